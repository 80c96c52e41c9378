// SPDX-License-Identifier: Apache-2.0
// The step of any model that has steps, for host and device.
#pragma once

#include <cstddef>

#include "libmx/gemm/fused_step.hpp"
#include "libmx/gemm/grouped_step.hpp"
#include "libmx/gemm/operand.hpp"
#include "libmx/gemm/two_sided_step.hpp"
#include "libmx/gemm/unpacked_operand.hpp"

namespace mx::gemm {

/// What all steps of a product share.
struct step_kind {
    algorithm how;
    step_rule rule;
    int least_exponent;             ///< see grouped_step
    int element_fraction_bits = 0;  ///< of products of elements, scales left out
};

inline step_kind kind_of(const operand& a, const operand& b, const accumulator& m) {
    step_kind k{m.how, rule_of(m, fraction_bits_of(a) + fraction_bits_of(b)),
                a.format->least_exponent() + b.format->least_exponent(),
                a.format->mantissa_bits + b.format->mantissa_bits};
    // Subnormals that are normalized have exponents down to the lowest bit's.
    if (m.subnormals == subnormal_alignment::leading_bit) {
        k.least_exponent -= a.format->mantissa_bits + b.format->mantissa_bits;
    }
    return k;
}

/// Scales of one operand per step; 0 where they are part of the factors.
MX_HD inline std::size_t groups_of(const step_kind& s) {
    return s.how == algorithm::grouped
               ? static_cast<std::size_t>(s.rule.length / s.rule.group_length)
               : 0;
}

/// The accumulator after a step over rule.length factors and groups_of scales of each operand.
MX_HD inline std::uint32_t one_step(const step_kind& s, const factor* a, const factor* b,
                                    const scale_factor* sa, const scale_factor* sb,
                                    std::uint32_t c) {
    if (s.how == algorithm::grouped) {
        return grouped_step(s.rule, s.least_exponent, a, b, sa, sb, c);
    }
    if (s.how == algorithm::two_sided) return two_sided_step(s.rule, a, b, c);
    if (s.how == algorithm::interleaved) return interleaved_step(s.rule, a, b, c);
    return fused_step(s.rule, a, b, c);
}

}  // namespace mx::gemm
