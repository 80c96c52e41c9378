// SPDX-License-Identifier: Apache-2.0
// The few integers of an element format that the encoder needs, small enough to pass to a kernel.
#pragma once

#include <cstdint>

#include "libmx/base/macros.hpp"
#include "libmx/format/element_formats.hpp"

namespace mx::format {

struct element_params {
    bool floating;
    bool has_sign;
    int bits;
    int mantissa_bits;
    int emin;
    int quantum;                    ///< exponent of the grid below emin (fixed: of the whole grid)
    std::uint32_t max_positive;     ///< largest finite magnitude code
    std::uint32_t max_negative;     ///< the same for negative values (fixed, full range: one more)
    std::uint32_t smallest_normal;  ///< first normal magnitude code, 0 without subnormals
    int nan_code;                   ///< -1 if there is none
    int far_exponent;               ///< every magnitude from 2^(this + 1) on is beyond the largest
    bool clamps_negative;           ///< see element_format

    /// The largest finite magnitude code of a sign, without a branch on it.
    MX_HD constexpr std::uint32_t limit(bool negative) const {
        return max_positive + (max_negative - max_positive) * static_cast<std::uint32_t>(negative);
    }
    friend bool operator==(const element_params&, const element_params&) = default;
};

/// The parameters of `f`; `full_range` lets integers use the code -2^(n-1).
MX_HD constexpr element_params params_of(const element_format& f, bool full_range) {
    return {f.floating(),
            f.has_sign,
            f.bits(),
            f.mantissa_bits,
            f.emin(),
            f.quantum(),
            f.max_code(),
            !f.floating() && full_range ? f.max_code() + 1u : f.max_code(),
            f.has_subnormals() ? 1u << f.mantissa_bits : 0u,
            f.nan_code(),
            f.exponent_bits == 8 ? 127 : 16,
            f.clamps_negative};
}

}  // namespace mx::format
