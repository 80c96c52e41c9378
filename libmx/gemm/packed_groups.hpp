// SPDX-License-Identifier: Apache-2.0
// grouped_step for elements packed to signed bytes, which a GPU multiplies and adds four at a time.
// Same bits as grouped_step for every rule that takes_packed() accepts.
#pragma once

#include <cstdint>

#include "libmx/gemm/one_step.hpp"

namespace mx::gemm {

inline constexpr int packed_group_length = 16;
inline constexpr int packed_groups = 4;  ///< of a step

/// 16 elements as multiples of 2^(smallest exponent - mantissa bits), four per word, and a mask of
/// the non-zero ones.
struct packed_group {
    std::uint32_t bytes[4];
    std::uint32_t nonzero;
};

/// Whether steps consist of four groups of 16 e2m1: products with at most two fraction bits.
MX_HD inline bool takes_packed(const step_rule& r, int element_fraction_bits) {
    return r.length == packed_groups * packed_group_length &&
           r.group_length == packed_group_length && element_fraction_bits <= 2 &&
           r.zero == zero_sign::plus;
}

/// Stores element `k` of a group; `least_exponent` is that of its operand's format.
MX_HD inline void pack(packed_group& g, int k, const factor& f, int least_exponent) {
    const std::int32_t value = f.significand * (1 << (f.exponent - least_exponent));
    if (f.significand == 0) return;
    g.bytes[k / 4] |= (static_cast<std::uint32_t>(value) & 0xffu) << (k % 4 * 8);
    g.nonzero |= 1u << k;
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

/// grouped_step for packed groups.
MX_HD inline std::uint32_t packed_step(const step_rule& r, int least_exponent,
                                       const packed_group (&a)[packed_groups],
                                       const packed_group (&b)[packed_groups],
                                       const scale_factor* sa, const scale_factor* sb,
                                       std::uint32_t c) {
    group_sum sums[packed_groups];
    for (int g = 0; g < packed_groups; ++g) {
        std::int32_t sum = 0;
        for (int i = 0; i < 4; ++i) sum = add_four(a[g].bytes[i], b[g].bytes[i], sum);
        sums[g] = {sum, (a[g].nonzero & b[g].nonzero) != 0};
    }
    bool minus_zeros = false;  // rules accepted by takes_packed() convert them to +0
    return step_of_groups(r, packed_groups, least_exponent, sa, sb, c, minus_zeros,
                          [&](int g) { return sums[g]; });
}

}  // namespace mx::gemm
