// SPDX-License-Identifier: Apache-2.0
// The plain loop: one step at a time by the integer bodies.
#include "libmx/gemm/engine.hpp"
#include "libmx/gemm/fused_step.hpp"
#include "libmx/gemm/grouped_step.hpp"
#include "libmx/gemm/software_engine.hpp"
#include "libmx/gemm/two_sided_step.hpp"
#include "libmx/gemm/unpacked_operand.hpp"

namespace mx::gemm {
namespace {

class plain_engine final : public engine {
  public:
    plain_engine(const operand& a, const operand& b, const accumulator& m)
        : how_(m.how),
          rule_(rule_of(m, fraction_bits_of(a) + fraction_bits_of(b))),
          least_exponent_(a.format->least_exponent() + b.format->least_exponent()),
          a_(unpack_operand(a, m)),
          b_(unpack_operand(b, m)) {
        // Subnormals that are normalized have exponents down to the lowest bit's.
        if (m.subnormals == subnormal_alignment::leading_bit) {
            least_exponent_ -= a.format->mantissa_bits + b.format->mantissa_bits;
        }
    }

    void walk(const tile& where, const step_range& steps, std::uint32_t* acc) const override {
        for (std::size_t r = 0; r < where.rows; ++r) {
            for (std::size_t c = 0; c < where.cols; ++c) {
                std::uint32_t& sum = acc[r * where.cols + c];
                for (std::size_t i = 0; i < steps.count; ++i) {
                    sum = step(where.row + r, where.col + c, steps.at(i), sum);
                }
            }
        }
    }

  private:
    std::uint32_t step(std::size_t row, std::size_t col, std::size_t at, std::uint32_t sum) const {
        const auto length = static_cast<std::size_t>(rule_.length);
        const factor* a = a_.row(row) + at * length;
        const factor* b = b_.row(col) + at * length;
        if (how_ == algorithm::grouped) {
            const std::size_t groups = length / static_cast<std::size_t>(rule_.group_length);
            return grouped_step(rule_, least_exponent_, a, b, a_.scale_row(row) + at * groups,
                                b_.scale_row(col) + at * groups, sum);
        }
        if (how_ == algorithm::two_sided) return two_sided_step(rule_, a, b, sum);
        if (how_ == algorithm::interleaved) return interleaved_step(rule_, a, b, sum);
        return fused_step(rule_, a, b, sum);
    }

    algorithm how_;
    step_rule rule_;
    int least_exponent_;
    unpacked_operand a_, b_;
};

}  // namespace

std::size_t step_length(const accumulator& m) {
    return m.fused_length > 0 ? static_cast<std::size_t>(m.fused_length) : 1;
}

std::unique_ptr<engine> make_plain_engine(const operand& a, const operand& b,
                                          const accumulator& m) {
    if (!has_steps(m.how)) return make_software_engine(a, b, m);
    return std::make_unique<plain_engine>(a, b, m);
}

}  // namespace mx::gemm
