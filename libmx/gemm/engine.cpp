// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/engine.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/gemm/exact_dot.hpp"
#include "libmx/gemm/one_step.hpp"
#include "libmx/gemm/unpacked_operand.hpp"

namespace mx::gemm {
namespace {

// Sums a binary tree whose left side is the largest power of two below its size; overwrites
// `terms`.
float add_tree(float* terms, std::size_t count) {
    if (count == 1) return terms[0];
    std::size_t left = 1;
    while (left * 2 < count) left *= 2;
    return add_tree(terms, left) + add_tree(terms + left, count - left);
}

// The accumulator after the steps of a range, whose values begin at `a` and `b`.

float sum_exactly(const double* a, const double* b, const step_range& steps, float c) {
    return exact_dot(a, b, steps.count, c);
}
float chain(const float* a, const float* b, const step_range& steps, float sum) {
    for (std::size_t i = 0; i < steps.count; ++i) {
        const std::size_t k = steps.descending ? steps.count - 1 - i : i;
        sum = std::fma(a[k], b[k], sum);
    }
    return sum;
}
float sum_pairwise(const float* a, const float* b, const step_range& steps, float sum) {
    static thread_local std::vector<float> products;
    products.resize(steps.count);
    for (std::size_t k = 0; k < steps.count; ++k) products[k] = a[k] * b[k];
    if (steps.descending) std::ranges::reverse(products);
    return products.empty() ? sum : sum + add_tree(products.data(), products.size());
}

// Models defined without hardware steps: exact sums, chains of float32 multiply-adds, trees.
template <typename T>
class software_engine final : public engine {
  public:
    using change = float (*)(const T* a, const T* b, const step_range& steps, float sum);
    software_engine(std::size_t depth, std::vector<T> a, std::vector<T> b, change what)
        : depth_(depth), a_(std::move(a)), b_(std::move(b)), change_(what) {}

    void walk(const tile& where, const step_range& steps, std::uint32_t* acc) const override {
        for (std::size_t r = 0; r < where.rows; ++r) {
            const T* const a = a_.data() + (where.row + r) * depth_ + steps.first;
            for (std::size_t c = 0; c < where.cols; ++c, ++acc) {
                const T* const b = b_.data() + (where.col + c) * depth_ + steps.first;
                *acc = base::bits_of(change_(a, b, steps, base::float_from_bits(*acc)));
            }
        }
    }

  private:
    std::size_t depth_;
    std::vector<T> a_, b_;
    change change_;
};

// The scalar loop: one step at a time with the integer functions.
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
    if (has_steps(m.how)) return std::make_unique<plain_engine>(a, b, m);
    if (m.how == algorithm::exact) {
        return std::make_unique<software_engine<double>>(a.depth, exact_values(a), exact_values(b),
                                                         sum_exactly);
    }
    return std::make_unique<software_engine<float>>(
        a.depth, dequantized(a, m.enters), dequantized(b, m.enters),
        m.how == algorithm::fma_chain ? chain : sum_pairwise);
}

}  // namespace mx::gemm
