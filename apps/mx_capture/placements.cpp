// SPDX-License-Identifier: Apache-2.0
#include "apps/mx_capture/placements.hpp"

#include <algorithm>
#include <array>

#include "apps/mx_capture/instructions.hpp"
#include "libmx/conformance/verify/mma_file.hpp"

namespace mx::capture {
namespace {

int deviations(const placement& p) {
    return (p.matrix != matrix_layout::documented ? 1 : 0) +
           (p.codes != code_layout::documented ? 1 : 0) +
           (p.scales != scale_layout::documented ? 1 : 0) +
           (p.results != result_layout::documented ? 1 : 0);
}

// The name of each layout in the order of its enumeration; empty for documented ones.
constexpr std::array<std::string_view, 3> matrix_words{"", "offsets of matrices swapped",
                                                       "matrices swizzled by 32 bytes"};
constexpr std::array<std::string_view, 5> code_words{
    "", "codes in low bits of bytes", "codes two bits up in bytes", "codes in high bits of bytes",
    "codes packed by 16"};
constexpr std::array<std::string_view, 4> scale_words{"", "scales in other lanes",
                                                      "scales in other pairs", "scales reversed"};
constexpr std::array<std::string_view, 2> result_words{"", "results in high halves"};

// Every layout of an enumeration, or the first one only.
template <typename Layout, std::size_t N>
std::vector<Layout> layouts(const std::array<std::string_view, N>& /*words*/, bool all) {
    std::vector<Layout> list;
    for (std::size_t i = 0; i < (all ? N : 1); ++i) list.push_back(static_cast<Layout>(i));
    return list;
}

template <typename Layout, std::size_t N>
std::string_view word_of(const std::array<std::string_view, N>& words, Layout layout) {
    return words.at(static_cast<std::size_t>(layout));
}

}  // namespace

std::vector<placement> placements_of(const instruction& i) {
    const bool narrow = std::min(i.what.a->code_bits(), i.what.b->code_bits()) < 8;
    const bool by_tcgen05 = i.by == unit::tcgen05;
    const auto matrices = layouts<matrix_layout>(matrix_words, i.by != unit::mma_sync);
    const auto codes = layouts<code_layout>(code_words, narrow && i.what.instruction_k == 32);
    const auto scales = layouts<scale_layout>(scale_words, i.what.scale != nullptr);
    const auto results = layouts<result_layout>(result_words, by_tcgen05 && i.what.f16);

    std::vector<placement> list;
    for (const matrix_layout m : matrices) {
        for (const code_layout c : codes) {
            for (const scale_layout s : scales) {
                for (const result_layout r : results) list.push_back({m, c, s, r});
            }
        }
    }
    std::ranges::stable_sort(list, {}, deviations);
    return list;
}

std::string to_string(const placement& p) {
    std::string text;
    for (const std::string_view words :
         {word_of(matrix_words, p.matrix), word_of(code_words, p.codes),
          word_of(scale_words, p.scales), word_of(result_words, p.results)}) {
        if (words.empty()) continue;
        if (!text.empty()) text += ", ";
        text += words;
    }
    return text.empty() ? std::string(conformance::verify::documented_placement) : text;
}

}  // namespace mx::capture
