// SPDX-License-Identifier: Apache-2.0
#include "apps/mx_capture/placements.hpp"

#include <algorithm>

#include "apps/mx_capture/instructions.hpp"
#include "libmx/conformance/verify/captured.hpp"

namespace mx::capture {
namespace {

int deviations(const placement& p) {
    return (p.matrix != matrix_layout::documented ? 1 : 0) +
           (p.codes != code_layout::documented ? 1 : 0) +
           (p.scales != scale_layout::documented ? 1 : 0) +
           (p.results != result_layout::documented ? 1 : 0);
}

std::string_view words_of(matrix_layout m) {
    switch (m) {
        case matrix_layout::documented:
            break;
        case matrix_layout::offsets_swapped:
            return "offsets of matrices swapped";
        case matrix_layout::swizzled:
            return "matrices swizzled by 32 bytes";
    }
    return "";
}

std::string_view words_of(code_layout c) {
    switch (c) {
        case code_layout::documented:
            break;
        case code_layout::low_bits:
            return "codes in low bits of bytes";
        case code_layout::middle_bits:
            return "codes two bits up in bytes";
        case code_layout::high_bits:
            return "codes in high bits of bytes";
        case code_layout::packed:
            return "codes packed by 16";
    }
    return "";
}

std::string_view words_of(scale_layout s) {
    switch (s) {
        case scale_layout::documented:
            break;
        case scale_layout::other_lanes:
            return "scales in other lanes";
        case scale_layout::other_pairs:
            return "scales in other pairs";
        case scale_layout::reversed:
            return "scales reversed";
    }
    return "";
}

std::string_view words_of(result_layout r) {
    return r == result_layout::high_half ? "results in high halves" : "";
}

}  // namespace

std::vector<placement> placements_of(const instruction& i) {
    std::vector<matrix_layout> matrices{matrix_layout::documented};
    if (i.by == unit::tcgen05) {
        matrices = {matrix_layout::documented, matrix_layout::offsets_swapped,
                    matrix_layout::swizzled};
    }
    std::vector<code_layout> codes{code_layout::documented};
    const bool narrow = std::min(i.what.a->code_bits(), i.what.b->code_bits()) < 8;
    if (narrow && i.what.instruction_k == 32) {
        codes = {code_layout::documented, code_layout::low_bits, code_layout::middle_bits,
                 code_layout::high_bits, code_layout::packed};
    }
    std::vector<scale_layout> scales{scale_layout::documented};
    if (i.what.scale != nullptr) {
        scales = {scale_layout::documented, scale_layout::other_lanes, scale_layout::other_pairs,
                  scale_layout::reversed};
    }
    std::vector<result_layout> results{result_layout::documented};
    if (i.by == unit::tcgen05 && i.what.f16) results.push_back(result_layout::high_half);

    std::vector<placement> list;
    for (const matrix_layout m : matrices) {
        for (const code_layout c : codes) {
            for (const scale_layout s : scales) {
                for (const result_layout r : results) list.push_back({m, c, s, r});
            }
        }
    }
    std::stable_sort(list.begin(), list.end(), [](const placement& x, const placement& y) {
        return deviations(x) < deviations(y);
    });
    return list;
}

std::string to_string(const placement& p) {
    std::string text;
    for (const std::string_view words :
         {words_of(p.matrix), words_of(p.codes), words_of(p.scales), words_of(p.results)}) {
        if (words.empty()) continue;
        if (!text.empty()) text += ", ";
        text += words;
    }
    return text.empty() ? std::string(conformance::verify::documented_placement) : text;
}

}  // namespace mx::capture
