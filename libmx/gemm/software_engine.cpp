// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/software_engine.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/gemm/exact_dot.hpp"
#include "libmx/gemm/unpacked_operand.hpp"

namespace mx::gemm {
namespace {

using base::bits_of;
using base::float_from_bits;

// Calls change(row, col, accumulator) for the outputs of a tile.
template <typename Change>
void each_output(const tile& where, std::uint32_t* acc, Change change) {
    for (std::size_t r = 0; r < where.rows; ++r) {
        for (std::size_t c = 0; c < where.cols; ++c) {
            std::uint32_t& bits = acc[r * where.cols + c];
            bits = bits_of(change(where.row + r, where.col + c, float_from_bits(bits)));
        }
    }
}

class exact_engine final : public engine {
  public:
    exact_engine(const operand& a, const operand& b)
        : depth_(a.depth), a_(exact_values(a)), b_(exact_values(b)) {}

    void walk(const tile& where, const step_range& steps, std::uint32_t* acc) const override {
        each_output(where, acc, [&](std::size_t row, std::size_t col, float c) {
            return exact_dot(a_.data() + row * depth_ + steps.first,
                             b_.data() + col * depth_ + steps.first, steps.count, c);
        });
    }

  private:
    std::size_t depth_;
    std::vector<double> a_, b_;
};

class chain_engine final : public engine {
  public:
    chain_engine(const operand& a, const operand& b, intake how)
        : depth_(a.depth), a_(dequantized(a, how)), b_(dequantized(b, how)) {}

    void walk(const tile& where, const step_range& steps, std::uint32_t* acc) const override {
        each_output(where, acc, [&](std::size_t row, std::size_t col, float sum) {
            const float* a = a_.data() + row * depth_;
            const float* b = b_.data() + col * depth_;
            for (std::size_t i = 0; i < steps.count; ++i) {
                const std::size_t k = steps.first + (steps.descending ? steps.count - 1 - i : i);
                sum = std::fma(a[k], b[k], sum);
            }
            return sum;
        });
    }

  private:
    std::size_t depth_;
    std::vector<float> a_, b_;
};

// A tree whose left side is the largest power of two below its size; overwrites `terms`.
float add_tree(float* terms, std::size_t count) {
    if (count == 1) return terms[0];
    std::size_t left = 1;
    while (left * 2 < count) left *= 2;
    return add_tree(terms, left) + add_tree(terms + left, count - left);
}

class pairwise_engine final : public engine {
  public:
    pairwise_engine(const operand& a, const operand& b, intake how)
        : depth_(a.depth), a_(dequantized(a, how)), b_(dequantized(b, how)) {}

    void walk(const tile& where, const step_range& steps, std::uint32_t* acc) const override {
        std::vector<float> products(steps.count);
        each_output(where, acc, [&](std::size_t row, std::size_t col, float sum) {
            const float* a = a_.data() + row * depth_ + steps.first;
            const float* b = b_.data() + col * depth_ + steps.first;
            for (std::size_t k = 0; k < steps.count; ++k) products[k] = a[k] * b[k];
            if (steps.descending) std::reverse(products.begin(), products.end());
            return products.empty() ? sum : sum + add_tree(products.data(), products.size());
        });
    }

  private:
    std::size_t depth_;
    std::vector<float> a_, b_;
};

}  // namespace

std::unique_ptr<engine> make_software_engine(const operand& a, const operand& b,
                                             const accumulator& m) {
    if (m.how == algorithm::exact) return std::make_unique<exact_engine>(a, b);
    if (m.how == algorithm::fma_chain) return std::make_unique<chain_engine>(a, b, m.enters);
    return std::make_unique<pairwise_engine>(a, b, m.enters);
}

}  // namespace mx::gemm
