// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/storage_views.hpp"

#include <algorithm>
#include <tuple>

#include "libmx/base/scaled.hpp"

namespace mx::io {

std::vector<std::pair<std::size_t, std::size_t>> count_storage_once(
    std::vector<storage_view> views, std::vector<tensor_info>& tensors, read_budget& budget) {
    // Of views that begin together the longest counts, of equal ones the first.
    std::ranges::sort(views, {}, [](const storage_view& v) {
        return std::tuple(v.storage, v.begin, ~v.end, v.tensor);
    });
    std::vector<std::pair<std::size_t, std::size_t>> overlaps;
    const storage_view* furthest = nullptr;  // of those of the same storage
    const storage_view* before = nullptr;
    std::uint64_t reach = 0, left = 0;  // up to where views without gaps go; bytes not yet counted
    for (const storage_view& v : views) {
        const bool first = before == nullptr || before->storage != v.storage;
        if (first) {
            furthest = nullptr;
            reach = 0;
            left = v.storage_bytes;
        }
        tensor_info& t = tensors[v.tensor];
        const bool again =
            !first && before->begin == v.begin && before->end == v.end && before->steps == v.steps;
        const std::uint64_t fresh = v.end - std::min(v.end, std::max(v.begin, reach));
        const std::uint64_t counted = again ? 0 : std::min({fresh, t.bytes, left});
        left -= counted;
        const bool overlapping = furthest != nullptr && v.begin < furthest->end;
        if (overlapping) overlaps.emplace_back(v.tensor, furthest->tensor);
        if (counted == 0 && overlapping) {
            const tensor_info& owner = tensors[furthest->tensor];
            const std::string& name = owner.tied_to.empty() ? owner.name : owner.tied_to;
            budget.take(name.size(), t.name);
            t.tied_to = name;
        } else if (v.occupied < v.storage_bytes) {
            t.stored_bytes =
                std::max<std::uint64_t>(1, base::scaled_down(v.occupied, counted, v.storage_bytes));
        } else if (counted != t.bytes) {
            t.stored_bytes = std::max<std::uint64_t>(1, counted);
        }
        if (v.steps.empty()) reach = std::max(reach, v.end);
        if (furthest == nullptr || v.end > furthest->end) furthest = &v;
        before = &v;
    }
    return overlaps;
}

}  // namespace mx::io
