// SPDX-License-Identifier: Apache-2.0
// The integers of a model that one step needs, small enough to pass to a kernel.
#pragma once

#include "libmx/base/macros.hpp"
#include "libmx/gemm/accumulator.hpp"

namespace mx::gemm {

struct step_rule {
    int length = 0;              ///< L
    int group_length = 0;        ///< products per exact group
    int fraction_bits = 0;       ///< F
    int wide_fraction_bits = 0;  ///< F2
    int exponent_floor = 0;
    int product_fraction_bits = 0;  ///< of significand times significand, scales included
    conversion convert = conversion::rz_fp32;
    zero_sign zero = zero_sign::plus;
    zero_sign underflow = zero_sign::kept;
};

/// The rule of `m` for operands whose products have `product_fraction_bits` fraction bits.
MX_HD inline step_rule rule_of(const accumulator& m, int product_fraction_bits) {
    return {m.fused_length,   m.group_length,        m.fraction_bits, m.wide_fraction_bits,
            m.exponent_floor, product_fraction_bits, m.convert,       m.zero,
            m.underflow};
}

}  // namespace mx::gemm
