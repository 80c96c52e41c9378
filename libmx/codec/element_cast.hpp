// SPDX-License-Identifier: Apache-2.0
// Conversion of a value without a block, to a number or to a scale's power of two: one body for
// host and device.
#pragma once

#include <cstdint>

#include "libmx/codec/convert_element.hpp"

namespace mx::codec {

/// To E8M0 `number` has no element: its dialect, rounding (zero: down, else up), saturation and
/// values count.
struct element_cast {
    conversion number;
    bool power_of_two = false;
};

/// The cast to E8M0; throws base::error (usage) when the dialect has none.
element_cast cast_to_e8m0(const dialect& by, format::rounding how, bool saturate);

/// Casts the float32 bits `x`; `draw` is used by stochastic rounding only.
MX_HD inline converted cast_element(const element_cast& c, std::uint32_t x, std::uint32_t draw) {
    if (!c.power_of_two) return convert(c.number, x, draw);
    const bool toward_zero = c.number.mode.how == format::rounding::zero;
    const int code = convert_e8m0(*c.number.by, x, toward_zero, c.number.saturate);
    return {code, c.number.value[code]};
}

}  // namespace mx::codec
