// SPDX-License-Identifier: Apache-2.0
// THE LIST of shared-scale formats.
#pragma once

#include <array>
#include <string_view>

#include "libmx/format/element_formats.hpp"

namespace mx::format {

/// One scale format. `number` describes its codes; E8M0 (value 2^(code-127), code 255 is NaN, no
/// zero, no sign) is not of that shape and is told apart by `power_of_two`.
struct scale_format {
    std::string_view name;
    bool power_of_two;
    element_format number;  ///< not meaningful when power_of_two
    std::string_view safetensors;
    std::string_view summary;

    constexpr int bits() const { return power_of_two ? 8 : number.bits(); }
};

inline constexpr int e8m0_bias = 127;
inline constexpr int e8m0_nan = 255;
inline constexpr int e8m0_max = 254;

inline constexpr std::array scale_formats{
    scale_format{"e8m0", true, {}, "F8_E8M0", "2^(code-127), 255 is NaN (OCP MX 1.0, 5.4.1)"},
    scale_format{"ue4m3", false,
                 element_format{"ue4m3", number_kind::floating, 4, 3, 7, specials::fn, false,
                                "F8_E4M3", "E4M3 without sign"},
                 "F8_E4M3", "E4M3 without sign (NVFP4 block scale), 127 is NaN"},
};

/// The row named `name`, or nullptr.
constexpr const scale_format* find_scale_format(std::string_view name) {
    for (const scale_format& f : scale_formats) {
        if (f.name == name) return &f;
    }
    return nullptr;
}

}  // namespace mx::format
