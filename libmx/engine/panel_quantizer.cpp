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

void panel_quantizer::place_segments(const block::grid& g, const panel& where,
                                     std::uint64_t tensor_id) {
    segments_.clear();
    places_.clear();
    for_each_segment(g, where, [&](const segment_in_panel& s) {
        segments_.push_back(s);
        places_.push_back({place_of(s, g, tensor_id), s.batch * where.rows + s.row, s.col});
    });
}

void panel_quantizer::run(const block::grid& g, const panel& where,
                          std::span<const codec::stored_values> models, std::uint64_t tensor_id,
                          std::span<const codec::recipe_request> recipes,
                          const std::function<void(const quantized_segment&)>& visit) {
    place_segments(g, where, tensor_id);
    codec::quantizer& by = recipes.front().params->has_blocks ? *quantizer_ : *elements_;
    const std::size_t each = recipes.size() / models.size();
    const std::size_t at_once = models.size() == 1 ? places_.size() : 1;
    for (std::size_t first = 0; first < places_.size(); first += at_once) {
        for (std::size_t m = 0; m < models.size(); ++m) {
            by.run({models[m], where.batches * where.rows, where.cols},
                   std::span(places_).subspan(first, at_once), recipes.subspan(m * each, each),
                   [&](std::size_t s, std::span<const codec::segment_result> results) {
                       visit({segments_[first + s], places_[first + s].place, g, results, m});
                   });
        }
    }
}

}  // namespace mx::engine
