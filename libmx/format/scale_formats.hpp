// SPDX-License-Identifier: Apache-2.0
// THE LIST of shared-scale formats.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "libmx/base/named.hpp"
#include "libmx/format/element_formats.hpp"

namespace mx::format {

/// Kind of a scale format's values.
enum class scale_kind : std::uint8_t {
    power_of_two,  ///< E8M0: 2^(code-127), code 255 is NaN, no zero, no sign
    number,        ///< codes of a small floating format
    float32,       ///< a float32 as it is
};

/// One scale format. `number` describes its codes where `kind` says number.
struct scale_format {
    std::string_view name;
    scale_kind kind;
    element_format number;
    std::string_view safetensors;
    std::string_view summary;

    constexpr bool power_of_two() const { return kind == scale_kind::power_of_two; }
    constexpr bool is_number() const { return kind == scale_kind::number; }
    /// Whether a scale is one of 256 codes or fewer, which tables can list.
    constexpr bool has_codes() const { return kind != scale_kind::float32; }
    constexpr int bits() const { return kind == scale_kind::float32 ? 32 : 8; }
};

inline constexpr int e8m0_bias = 127;
inline constexpr int e8m0_nan = 255;
inline constexpr int e8m0_max = 254;

inline constexpr std::array scale_formats{
    scale_format{"e8m0",
                 scale_kind::power_of_two,
                 {},
                 "F8_E8M0",
                 "2^(code-127), 255 is NaN (OCP MX 1.0, 5.4.1)"},
    scale_format{"ue4m3", scale_kind::number,
                 element_format{"ue4m3", number_kind::floating, 4, 3, 7, specials::fn, false,
                                "F8_E4M3", "E4M3 without sign"},
                 "F8_E4M3", "E4M3 without sign (NVFP4 block scale), 127 is NaN"},
    scale_format{"ue5m3", scale_kind::number,
                 element_format{"ue5m3", number_kind::floating, 5, 3, 15, specials::fn, false, "U8",
                                "E5M3 without sign", true},
                 "U8", "E5M3 without sign (AMDFP4 block scale), 255 is NaN, no Inf"},
    scale_format{"ue5m3_inf", scale_kind::number,
                 element_format{"ue5m3_inf", number_kind::floating, 5, 3, 15, specials::ieee, false,
                                "U8", "UE5M3 with Inf", true},
                 "U8", "E5M3 without sign (ml-explore/mlx#2962), 248 is Inf, 249 to 255 are NaN"},
    scale_format{
        "f32", scale_kind::float32, {}, "F32", "a float32 (FP8 block scaling), not a code"},
};

/// The row named `name`, or nullptr.
constexpr const scale_format* find_scale_format(std::string_view name) {
    return base::find_named(scale_formats, name);
}

}  // namespace mx::format
