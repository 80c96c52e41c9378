// SPDX-License-Identifier: Apache-2.0
#include "libmx/pipeline/skip.hpp"

#include <fmt/format.h>

namespace mx::pipeline {

std::string why_left_out(const io::tensor_info& info) {
    if (!info.note.empty()) return info.note;
    const tensor::dtype_row& type = tensor::row_of(info.type);
    if (type.to_f32 != tensor::widening::none) return {};
    return fmt::format("{} ({})", type.name, type.summary);
}

std::vector<tensor_ref> numeric_only(const std::vector<tensor_ref>& tensors,
                                     std::vector<skipped_tensor>& skipped) {
    std::vector<tensor_ref> kept;
    for (const tensor_ref& t : tensors) {
        const io::tensor_info& info = t.info();
        std::string reason = why_left_out(info);
        if (reason.empty()) {
            kept.push_back(t);
            continue;
        }
        if (!info.note.empty() && !info.remark.empty()) reason += "; " + info.remark;
        skipped.push_back({info.file, info.name, "", reason});
    }
    return kept;
}

}  // namespace mx::pipeline
