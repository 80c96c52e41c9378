// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "libmx/base/parsed.hpp"
#include "libmx/base/scaled.hpp"
#include "libmx/base/status.hpp"

namespace mx::engine {
namespace {

// A position in the concatenated tensors: before element `element` of a tensor.
struct border {
    std::size_t tensor = 0;
    std::uint64_t element = 0;
};

// The tolerance of a part's size at either end.
constexpr std::uint64_t slack = 20;

// `starts`: the number of bytes before each tensor, then the total.
border border_after(std::uint64_t parts, std::uint64_t count,
                    const std::vector<tensor_ref>& tensors,
                    const std::vector<std::uint64_t>& starts, splitting split) {
    const std::uint64_t all = starts.back();
    if (parts == count) return {tensors.size(), 0};
    const std::uint64_t at = base::scaled_down(all, parts, count);
    const auto above = std::lower_bound(starts.begin(), starts.end(), at);
    const auto index = static_cast<std::size_t>(above - starts.begin());
    const std::uint64_t up = *above - at;
    if (up == 0) return {index, 0};
    const std::uint64_t down = at - starts[index - 1];
    if (split == splitting::none || std::min(up, down) <= all / count / slack) {
        // The first of the tensors at that position, so that empty tensors stay with the following
        // one.
        const std::uint64_t start = down <= up ? starts[index - 1] : *above;
        const auto first = std::lower_bound(starts.begin(), starts.end(), start);
        return {static_cast<std::size_t>(first - starts.begin()), 0};
    }
    const io::tensor_info& info = tensors[index - 1].info();
    return {index - 1, base::scaled_down(info.elements, down, bytes_of(info))};
}

}  // namespace

part_number parse_part(std::string_view text) {
    const std::size_t slash = text.find('/');
    const auto number = [](std::string_view digits) {
        return base::parsed<std::uint64_t>(digits).value_or(0);
    };
    const part_number p =
        slash == std::string_view::npos
            ? part_number{0, 0}
            : part_number{number(text.substr(0, slash)), number(text.substr(slash + 1))};
    if (p.index == 0 || p.index > p.count || p.count > most_parts) {
        base::refuse("--shard '{}': give a part and the number of parts, as 3/7: 1/7 to 7/7",
                     base::printable(std::string(text)));
    }
    return p;
}

std::uint64_t bytes_of(const io::tensor_info& info) { return info.file_bytes(); }

std::uint64_t bytes_of(const io::tensor_info& info, const tensor_range& p) {
    if (info.elements == 0) return 0;
    return base::scaled_down(bytes_of(info), p.end - p.first, info.elements);
}

std::uint64_t split_panel_target(const io::tensor_info& info) {
    return std::clamp<std::uint64_t>(info.elements / 1024, 1 << 12, 1 << 17);
}

std::vector<tensor_range> ranges_of(const std::vector<tensor_ref>& tensors, const part_number& part,
                                    splitting split) {
    std::vector<std::uint64_t> starts{0};
    for (const tensor_ref& t : tensors) starts.push_back(starts.back() + bytes_of(t.info()));
    const border from = border_after(part.index - 1, part.count, tensors, starts, split);
    const border to = border_after(part.index, part.count, tensors, starts, split);
    std::vector<tensor_range> ranges;
    for (std::size_t t = from.tensor; t < tensors.size() && t <= to.tensor; ++t) {
        const std::uint64_t first = t == from.tensor ? from.element : 0;
        const std::uint64_t end = t == to.tensor ? to.element : tensors[t].info().elements;
        if (t == to.tensor && first >= end) break;
        ranges.push_back({t, first, end});
    }
    return ranges;
}

void partial_run::arrange(const std::vector<tensor_ref>& tensors) {
    const auto place = [](const range_sums& s) {
        return std::tuple(s.of.tensor, s.of.first, s.of.end);
    };
    std::ranges::stable_sort(sums, std::less(), place);
    const auto refuse = [](std::string_view tensor) {
        throw base::error(
            base::error_kind::input,
            fmt::format("the parts do not make up tensor '{}' of the files as they are now: make "
                        "them again",
                        base::printable(std::string(tensor))));
    };
    auto next = sums.begin();
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        const io::tensor_info& info = tensors[t].info();
        std::uint64_t done = 0;
        bool any = false;
        for (; next != sums.end() && next->of.tensor == t; ++next) {
            if (next->tensor != info.name || next->of.first != done || next->of.end < done) {
                refuse(info.name);
            }
            done = next->of.end;
            any = true;
        }
        if (!any || done != info.elements) refuse(info.name);
    }
    if (next != sums.end()) refuse(next->tensor);
}

std::vector<bool> partial_run::looks_at(const std::vector<tensor_ref>& tensors) const {
    std::vector<bool> looks(tensors.size());
    if (merges) return looks;
    for (const tensor_range& p : ranges_of(tensors, part)) looks[p.tensor] = true;
    return looks;
}

}  // namespace mx::engine
