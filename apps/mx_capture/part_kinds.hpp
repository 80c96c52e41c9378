// SPDX-License-Identifier: Apache-2.0
// THE LIST of kinds of parts, and the questions that each decides (docs/design/evidence.md).
#pragma once

#include <array>
#include <string_view>

namespace mx::capture {

struct part_kind {
    std::string_view name;       ///< what is recorded
    std::string_view beginning;  ///< of the names of its files
    std::string_view inside;     ///< what they have in them; "": anything
    std::string_view decides;
};

/// A file is of the first kind that it fits; every file fits one.
inline constexpr std::array part_kinds{
    part_kind{"codes to f16, bf16", "cvt/widen.", "", "the value of every code"},
    part_kind{"stochastic rounding", "cvt/", ".rs", "which random bits round which value"},
    part_kind{"scales", "cvt/ue8m0", "", "rounding of scales, and ue8m0 beyond its range"},
    part_kind{"codes of elements", "cvt/", "", "ties, NaN, saturation of every code"},
    part_kind{"replayed vectors", "mma/replay.", "", "whether published vectors are the chip's"},
    part_kind{"mma.sync with scales", "mma/mma_sync.mx", "",
              "scales, NaN scales, F of 4-bit kinds"},
    part_kind{"mma.sync", "mma/mma_sync.", "", "fp8 as compiled, signs of zeros, the f16 floor"},
    part_kind{"wgmma", "mma/wgmma.", "", "F and conversion of fp8, where fp8 subnormals align"},
    part_kind{"tcgen05, pairs", "mma/tcgen05_pair.", "", "whether a pair adds like one block"},
    part_kind{"tcgen05 with scales", "mma/tcgen05.mx", "", "scales, NaN scales, F of 4-bit kinds"},
    part_kind{"tcgen05", "mma/tcgen05.", "", "fp6, fp4: subnormals, floor, signs of zeros"},
    part_kind{"cuBLASLt", "gemm/", "", "how products are split along k"},
};

/// The kind of a file.
constexpr const part_kind& kind_of(std::string_view file) {
    for (const part_kind& k : part_kinds) {
        const bool inside = file.find(k.inside) != std::string_view::npos;
        if (file.substr(0, k.beginning.size()) == k.beginning && inside) return k;
    }
    return part_kinds.back();
}

}  // namespace mx::capture
