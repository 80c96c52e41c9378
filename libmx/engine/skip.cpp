// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/skip.hpp"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/engine/parts.hpp"

namespace mx::engine {

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
        skipped.push_back({info.file, info.name, "", reason,
                           std::string(tensor::row_of(info.type).name), info.shape, info.elements,
                           bytes_of(info), info.tied_to});
    }
    return kept;
}

void require_any(bool any, const std::vector<skipped_tensor>& skipped) {
    if (any) return;
    if (skipped.empty()) {
        throw base::error(base::error_kind::input,
                          "nothing to do: the input has no tensor with an element");
    }
    const skipped_tensor& first = skipped.front();
    std::set<std::pair<std::string_view, std::string_view>> tensors;
    for (const skipped_tensor& s : skipped) tensors.emplace(s.file, s.tensor);
    const std::string others =
        tensors.size() == 1 ? "is" : fmt::format("and {} more are", tensors.size() - 1);
    throw base::error(base::error_kind::input,
                      fmt::format("nothing to do: this tensor {} left out: {}; 'mx tensors' lists "
                                  "the tensors of a file",
                                  others, first.reason),
                      {first.file, first.tensor, {}});
}

}  // namespace mx::engine
