// SPDX-License-Identifier: Apache-2.0
// grouped_step for elements packed to signed bytes, which a GPU multiplies and adds four at a time.
// Operands are packed once. Same bits as grouped_step for every rule that takes_packed() accepts.
#pragma once

#include <cstdint>

#include "libmx/gemm/one_step.hpp"
#include "libmx/gemm/rounded_arithmetic.hpp"

namespace mx::gemm {

inline constexpr int packed_group_length = 16;
inline constexpr int packed_groups = 4;  ///< of a step

/// A row in a step: groups of 16 elements as multiples of 2^(smallest exponent - mantissa bits),
/// four per word, and their scales.
struct alignas(16) packed_row {
    struct alignas(16) four {
        std::uint32_t v[4];
    };
    four elements[packed_groups];
    four exponent;     ///< of the scale, as signed numbers
    four significand;  ///< of the scale
    four live;         ///< v[g / 2]: two masks of 16 non-zero elements, 0 under a zero scale;
                       ///< v[2]: whether a scale is NaN
};

/// Whether steps consist of four groups of 16 e2m1, products with at most two fraction bits, and
/// give float32, rounded toward zero.
constexpr bool takes_packed(const step_rule& r, int element_fraction_bits) {
    return r.length == packed_groups * packed_group_length &&
           r.group_length == packed_group_length && element_fraction_bits <= 2 &&
           r.convert == conversion::rz_fp32 && r.zero == zero_sign::plus &&
           r.underflow == zero_sign::kept;
}

/// Packs the factors of a step and the scales of its groups; `least_exponent` is that of the
/// operand's format.
inline packed_row pack(const factor* f, const scale_factor* s, int least_exponent) {
    packed_row row{};
    for (int g = 0; g < packed_groups; ++g) {
        row.exponent.v[g] = static_cast<std::uint32_t>(s[g].exponent);
        row.significand.v[g] = static_cast<std::uint32_t>(s[g].significand);
        if (s[g].nan) row.live.v[2] = 1;
        for (int k = 0; k < packed_group_length; ++k) {
            const factor& x = f[g * packed_group_length + k];
            if (x.significand == 0) continue;
            const std::int32_t value = x.significand * (1 << (x.exponent - least_exponent));
            row.elements[g].v[k / 4] |= (static_cast<std::uint32_t>(value) & 0xffu) << (k % 4 * 8);
            if (s[g].significand != 0) row.live.v[g / 2] |= 1u << (g % 2 * 16 + k);
        }
    }
    return row;
}

/// sum + the four products of signed bytes.
MX_HD inline std::int32_t add_four(std::uint32_t a, std::uint32_t b, std::int32_t sum) {
#if defined(__CUDA_ARCH__)
    return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
#else
    for (int i = 0; i < 32; i += 8) {
        sum += static_cast<std::int8_t>(a >> i & 0xffu) * static_cast<std::int8_t>(b >> i & 0xffu);
    }
    return sum;
#endif
}

/// grouped_step for packed rows.
MX_HD inline std::uint32_t packed_step(const step_rule& r, int least_exponent, const packed_row& a,
                                       const packed_row& b, std::uint32_t c) {
    const float start = base::float_from_bits(c);
    int top = alignment_of(start, target_of(conversion::rz_fp32).least_exponent, r.exponent_floor);
    std::int32_t term[packed_groups];
    int exponent[packed_groups];
    for (int g = 0; g < packed_groups; ++g) {
        std::int32_t sum = 0;
        for (int i = 0; i < 4; ++i) sum = add_four(a.elements[g].v[i], b.elements[g].v[i], sum);
        term[g] = sum * static_cast<std::int32_t>(a.significand.v[g] * b.significand.v[g]);
        exponent[g] = static_cast<std::int32_t>(a.exponent.v[g] + b.exponent.v[g]);
        const std::uint32_t live = a.live.v[g / 2] & b.live.v[g / 2];
        if ((g % 2 == 0 ? live << 16 : live >> 16) != 0) top = larger(top, exponent[g]);
    }
    const int unit = top - r.fraction_bits;
    // A term with the exponent `top` is 2^raise of these integers, and none has a larger one.
    const int lead = r.fraction_bits + least_exponent - r.product_fraction_bits;
    const int raise = larger(lead, 0);
    // Without sign: an infinite start, whose sum is not used, may wrap around.
    auto total = static_cast<std::uint64_t>(truncated_long(raised(start, -unit)));
    for (int g = 0; g < packed_groups; ++g) {
        // Rounded toward zero: the shift rounds down, and one's complement of a negative number,
        // -n - 1, is as far from the integer below as n from the one above.
        const std::int32_t sign = term[g] >> 31;
        const int down = smaller(larger(top - exponent[g] + raise - lead, 0), 63);
        total += static_cast<std::uint64_t>(
            ((std::int64_t{term[g]} * (std::int64_t{1} << raise) + sign) >> down) - sign);
    }
    if (((a.live.v[2] | b.live.v[2]) != 0) || base::is_nan(start)) return f32_canonical_nan;
    if (!base::is_finite(start)) return c;
    return base::bits_of(raised_toward_zero(
        float_toward_zero(static_cast<std::int64_t>(total)) * 0x1p64F, unit - 64));
}

}  // namespace mx::gemm
