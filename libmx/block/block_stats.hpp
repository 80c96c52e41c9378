// SPDX-License-Identifier: Apache-2.0
// Exact counts and sums of one quantized block, for the metrics.
#pragma once

#include <cstdint>

#include "libmx/base/macros.hpp"

namespace mx::block {

/// Counts over the elements of one block. Rates take `finite - poisoned` as their denominator; the
/// counts behind rates leave out non-finite and poisoned elements.
struct block_counts {
    std::uint32_t elements;
    std::uint32_t nan;
    std::uint32_t inf;
    std::uint32_t poisoned;          ///< finite, but the block's scale is NaN
    std::uint32_t nonzero;           ///< x != 0 (with an offset: float32(x - O) != 0)
    std::uint32_t overflow;          ///< |y| beyond the largest value
    std::uint32_t clamp;             ///< the rounded |y| beyond the largest value
    std::uint32_t top_code;          ///< q is the largest of its sign
    std::uint32_t underflow;         ///< x != 0 and d = 0
    std::uint32_t subnormal;         ///< 0 < |q| < smallest normal
    std::uint32_t dequant_overflow;  ///< a dialect's own d is not finite, though S and q are
};

/// Sums over the finite, unpoisoned elements, each rounded once; d is the exact dequantized value.
/// All but max_error are zero unless requested (codec::measure_block).
struct block_sums {
    double error2;     ///< sum of (d - x)^2
    double x2;         ///< sum of x^2
    double xd;         ///< sum of x * d
    double d2;         ///< sum of d^2
    double error;      ///< sum of d - x
    double max_error;  ///< max |d - x|
};

/// The source of an element's error: it saturates (counted by clamp), else underflows (counted by
/// underflow), else lies between two values of the grid.
enum class error_part : std::uint8_t { grid, clamp, underflow };

/// Verdicts on a block (design, section 4).
struct block_flags {
    bool zero;       ///< every element is zero
    bool eligible;   ///< at least two non-zero finite elements
    bool collapsed;  ///< eligible, and all non-zero inputs carry the same non-zero code magnitude
    bool saturated;  ///< eligible, and all non-zero inputs carry the largest code of their sign
    bool dead;       ///< eligible, and all non-zero inputs have q = 0
};

struct block_stats {
    block_counts count;
    block_sums sum;
    block_flags is;
    std::uint8_t scale_code;    ///< code of the scale; of a float32 scale its exponent field
    float scale;                ///< the block's scale as a number (without a tensor scale), or NaN
    std::uint16_t offset;       ///< binary16 bits, 0 without an offset
    std::uint32_t amax;         ///< float32 bits of what the scale rule saw
    std::uint32_t x_max;        ///< float32 bits of max |x|
    std::uint32_t x_min;        ///< float32 bits of min |x| over x != 0, 0 if there is none
    std::uint32_t counted_max;  ///< float32 bits of max |x| over what sums are over, 0 if nothing
};

/// Calls f(member of a, member of b, ...) for each additive figure of this name: over elements
/// (those of all kinds of recipes), over blocks.
template <typename F, typename... T>
MX_HD constexpr void each_count(F&& f, T&&... of) {
    f(of.elements...);
    f(of.nan...);
    f(of.inf...);
    f(of.poisoned...);
    f(of.nonzero...);
    f(of.overflow...);
    f(of.clamp...);
    f(of.top_code...);
    f(of.underflow...);
    f(of.subnormal...);
}
template <typename F, typename... T>
MX_HD constexpr void each_flag(F&& f, T&&... of) {
    f(of.zero...);
    f(of.eligible...);
    f(of.collapsed...);
    f(of.saturated...);
    f(of.dead...);
}

/// Adds n, for use with the above.
struct plus {
    template <typename To, typename N>
    MX_HD constexpr void operator()(To& to, N n) const {
        to += n;
    }
};

}  // namespace mx::block
