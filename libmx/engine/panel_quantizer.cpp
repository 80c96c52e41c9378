// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/panel_quantizer.hpp"

#include <algorithm>

namespace mx::engine {

codec::segment_place place_of(const segment_in_panel& s, const block::grid& g,
                              std::uint64_t tensor_id) {
    return {tensor_id,
            s.first,
            g.over.cols,
            s.rows,
            s.cols,
            std::min(g.block_rows, g.over.rows),
            std::min(g.block_cols, g.over.cols)};
}

void panel_quantizer::run(const block::grid& g, const panel& where,
                          const codec::stored_values& values, std::uint64_t tensor_id,
                          std::span<const codec::recipe_request> recipes,
                          const std::function<void(const quantized_segment&)>& visit) {
    segments_.clear();
    places_.clear();
    for_each_segment(g, where, [&](const segment_in_panel& s) {
        segments_.push_back(s);
        places_.push_back({place_of(s, g, tensor_id), s.batch * where.rows + s.row, s.col});
    });
    quantizer_->run({values, where.batches * where.rows, where.cols}, places_, recipes,
                    [&](std::size_t s, std::span<const codec::segment_result> results) {
                        visit({segments_[s], places_[s].place, g, results});
                    });
}

}  // namespace mx::engine
