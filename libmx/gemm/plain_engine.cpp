// SPDX-License-Identifier: Apache-2.0
// The plain loop: one step at a time by the integer bodies.
#include "libmx/gemm/engine.hpp"
#include "libmx/gemm/one_step.hpp"
#include "libmx/gemm/software_engine.hpp"
#include "libmx/gemm/unpacked_operand.hpp"

namespace mx::gemm {
namespace {

class plain_engine final : public engine {
  public:
    plain_engine(const operand& a, const operand& b, const accumulator& m)
        : kind_(kind_of(a, b, m)), a_(unpack_operand(a, m)), b_(unpack_operand(b, m)) {}

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
        const auto length = static_cast<std::size_t>(kind_.rule.length);
        const std::size_t groups = groups_of(kind_);
        return one_step(kind_, a_.row(row) + at * length, b_.row(col) + at * length,
                        a_.scale_row(row) + at * groups, b_.scale_row(col) + at * groups, sum);
    }

    step_kind kind_;
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
