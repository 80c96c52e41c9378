// SPDX-License-Identifier: Apache-2.0
#include "libmx/pipeline/skip.hpp"

#include <fmt/format.h>

namespace mx::pipeline {

std::vector<tensor_ref> numeric_only(const std::vector<tensor_ref>& tensors,
                                     std::vector<skipped_tensor>& skipped) {
    std::vector<tensor_ref> kept;
    for (const tensor_ref& t : tensors) {
        const io::tensor_info& info = t.info();
        const tensor::dtype_row& type = tensor::row_of(info.type);
        if (type.to_f32 != tensor::widening::none) {
            kept.push_back(t);
            continue;
        }
        const std::string reason =
            info.note.empty() ? fmt::format("{} ({})", type.name, type.summary) : info.note;
        skipped.push_back({info.file, info.name, "", reason});
    }
    return kept;
}

}  // namespace mx::pipeline
