// SPDX-License-Identifier: Apache-2.0
// fused_step for several outputs at a time in 32-bit arithmetic, which has the highest throughput
// on GPUs. Factors are split into magnitude, exponent and sign; a term is a product, a right shift
// and a multiplication by the sign. Same bits as fused_step for every rule that takes_split()
// accepts.
#pragma once

#include <cstdint>

#include "libmx/gemm/one_step.hpp"
#include "libmx/gemm/terms.hpp"

// Arrays indexed by output stay in registers only if the loops over them are unrolled.
#if defined(__CUDA_ARCH__)
#define MX_UNROLL _Pragma("unroll")
#else
#define MX_UNROLL
#endif

namespace mx::gemm {

/// Four consecutive factors along k, loaded at once.
struct alignas(16) split_words {
    std::uint32_t v[4];
};

/// Rows of split factors, `pitch` split_words apart.
struct split_rows {
    const split_words* magnitude;
    const split_words* exponent;  ///< as signed numbers
    const split_words* sign;      ///< 1 or -1
    unsigned pitch;
};

/// Splits one factor. Magnitudes of a left operand are shifted to the position of a term with
/// exponent E.
struct split_factor {
    std::uint32_t magnitude;
    std::int32_t exponent;
    std::int32_t sign;
};

/// The exponent of zero: below every floor, even with any other exponent added.
inline constexpr std::int32_t split_zero = -16384;

/// The number of terms that a 32-bit sum can hold: each is below 2^(F + 2).
inline constexpr int split_sum_terms = 16;

/// Whether products of `r`, below 2^(their fraction bits + 2), and 16 of its terms fit in 32 bits,
/// and steps consist of whole split_words.
MX_HD inline bool takes_split(const step_rule& r) {
    return r.fraction_bits <= 25 && r.product_fraction_bits <= 25 && r.length % 4 == 0 &&
           r.zero == zero_sign::plus;
}

/// The bits by which magnitudes of a left operand are shifted left, and by which terms are shifted
/// right at the alignment exponent; one of them is 0.
MX_HD inline int split_raise(const step_rule& r) {
    const int raise = r.fraction_bits - r.product_fraction_bits;
    return raise > 0 ? raise : 0;
}
MX_HD inline int split_lower(const step_rule& r) {
    const int lower = r.product_fraction_bits - r.fraction_bits;
    return lower > 0 ? lower : 0;
}

/// `raise` is split_raise() for the left operand and 0 for the right. `x` must not be NaN or Inf.
MX_HD inline split_factor split(const factor& f, int raise) {
    const std::int32_t s = f.significand;
    const auto magnitude = static_cast<std::uint32_t>(s < 0 ? -s : s);
    return {magnitude << raise, s == 0 ? split_zero : std::int32_t{f.exponent}, s < 0 ? -1 : 1};
}

/// x / 2^shift; 0 for shifts of 32 and more.
MX_HD inline std::uint32_t shifted_right(std::uint32_t x, std::uint32_t shift) {
#if defined(__CUDA_ARCH__)
    std::uint32_t y;
    asm("shr.u32 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(shift));
    return y;
#else
    return shift < 32 ? x >> shift : 0;
#endif
}

/// The step of `length` products (at most r.length) for `rows` rows of A from row `a_row` on, and
/// `cols` rows of B, `b_next` rows apart, from `b_row` on. No factor may be NaN or Inf.
template <int rows, int cols, int length>
MX_HD inline void split_step(const step_rule& r, const split_rows& a, unsigned a_row,
                             const split_rows& b, unsigned b_row, unsigned b_next,
                             std::uint32_t (&c)[rows][cols]) {
    std::int32_t top[rows][cols];
    MX_UNROLL
    for (int i = 0; i < rows; ++i) {
        MX_UNROLL
        for (int j = 0; j < cols; ++j) {
            const factor start = unpack_accumulator(r.convert, c[i][j]);
            top[i][j] = r.exponent_floor;
            if (start.significand != 0 && start.exponent > top[i][j]) top[i][j] = start.exponent;
        }
    }
    for (unsigned q = 0; q < length / 4; ++q) {
        split_words eb[cols];
        MX_UNROLL
        for (unsigned j = 0; j < cols; ++j) eb[j] = b.exponent[(b_row + j * b_next) * b.pitch + q];
        MX_UNROLL
        for (unsigned i = 0; i < rows; ++i) {
            const split_words ea = a.exponent[(a_row + i) * a.pitch + q];
            MX_UNROLL
            for (int j = 0; j < cols; ++j) {
                MX_UNROLL
                for (int k = 0; k < 4; ++k) {
                    const auto e = static_cast<std::int32_t>(ea.v[k] + eb[j].v[k]);
                    top[i][j] = e > top[i][j] ? e : top[i][j];
                }
            }
        }
    }
    const int lower = split_lower(r);
    std::int64_t total[rows][cols] = {};
    for (unsigned first = 0; first < length / 4; first += split_sum_terms / 4) {
        std::int32_t sum[rows][cols] = {};
        for (unsigned q = first; q < first + split_sum_terms / 4 && q < length / 4; ++q) {
            split_words mb[cols], eb[cols], sb[cols];
            MX_UNROLL
            for (unsigned j = 0; j < cols; ++j) {
                const unsigned at = (b_row + j * b_next) * b.pitch + q;
                mb[j] = b.magnitude[at];
                eb[j] = b.exponent[at];
                sb[j] = b.sign[at];
            }
            MX_UNROLL
            for (unsigned i = 0; i < rows; ++i) {
                const unsigned at = (a_row + i) * a.pitch + q;
                const split_words ma = a.magnitude[at];
                const split_words ea = a.exponent[at];
                const split_words sa = a.sign[at];
                MX_UNROLL
                for (int j = 0; j < cols; ++j) {
                    const auto down = static_cast<std::uint32_t>(top[i][j] + lower);
                    MX_UNROLL
                    for (int k = 0; k < 4; ++k) {
                        const std::uint32_t product = ma.v[k] * mb[j].v[k];
                        const std::uint32_t shift = down - ea.v[k] - eb[j].v[k];
                        const std::uint32_t sign = sa.v[k] * sb[j].v[k];
                        sum[i][j] +=
                            static_cast<std::int32_t>(shifted_right(product, shift) * sign);
                    }
                }
            }
        }
        MX_UNROLL
        for (int i = 0; i < rows; ++i) {
            MX_UNROLL
            for (int j = 0; j < cols; ++j) total[i][j] += sum[i][j];
        }
    }
    MX_UNROLL
    for (int i = 0; i < rows; ++i) {
        MX_UNROLL
        for (int j = 0; j < cols; ++j) {
            const factor start = unpack_accumulator(r.convert, c[i][j]);
            special_terms special;
            special.add(start);
            const int unit = top[i][j] - r.fraction_bits;
            const std::int64_t own = shifted_toward_zero(
                start.significand, start.exponent - accumulator_fraction_bits(r.convert) - unit);
            c[i][j] = special.any() ? special.result(r.convert)
                                    : convert_sum(r, total[i][j] + own, unit, false);
        }
    }
}

}  // namespace mx::gemm

#undef MX_UNROLL
