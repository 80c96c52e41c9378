// SPDX-License-Identifier: Apache-2.0
// What the distributions of matrix inputs are made with: codes by exponent, and places in a tile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libmx/conformance/vectors/mma_inputs.hpp"
#include "libmx/conformance/vectors/word_stream.hpp"

namespace mx::conformance::vectors {

/// The largest exponent of a finite number.
int greatest_exponent(const gemm::operand_format& f);

/// Whether `code` is Inf or NaN.
bool is_special(const gemm::operand_format& f, std::uint32_t code);

/// The code next to significand * 2^exponent, ties away from zero, beyond the largest finite number
/// that number. Dropped bits are 0.
std::uint32_t nearest_code(const gemm::operand_format& f, bool negative, std::uint64_t significand,
                           int exponent);

/// The code of 2^exponent, of the nearest end of the format's range outside of it.
std::uint32_t power_code(const gemm::operand_format& f, int exponent);

/// `code` with its sign turned.
std::uint32_t negated(const gemm::operand_format& f, std::uint32_t code);

class mma_tile_maker {
  public:
    mma_tile_maker(const mma_case& what, word_stream& words, std::uint64_t index, mma_tile& tile);

    const mma_case& what() const { return what_; }
    const gemm::operand_format& a_format() const { return *what_.a; }
    const gemm::operand_format& b_format() const { return *what_.b; }
    const gemm::operand_format& c_format() const { return what_.accumulator(); }
    word_stream& words() { return words_; }
    std::uint64_t index() const { return index_; }
    std::size_t depth() const { return what_.depth(); }

    std::uint32_t& a(std::size_t row, std::size_t k) { return tile_.a[row * depth() + k]; }
    std::uint32_t& b(std::size_t col, std::size_t k) { return tile_.b[col * depth() + k]; }
    std::uint32_t& c(std::size_t row, std::size_t col) {
        return tile_.c[row * mma_tile_cols + col];
    }
    std::uint8_t& sfa(std::size_t row, std::size_t block) {
        return tile_.sfa[row * what_.blocks() + block];
    }
    std::uint8_t& sfb(std::size_t col, std::size_t block) {
        return tile_.sfb[col * what_.blocks() + block];
    }

    /// Any finite code.
    std::uint32_t finite(const gemm::operand_format& f);
    /// A number of this exponent and any mantissa; subnormal or the largest outside of the range.
    std::uint32_t near(const gemm::operand_format& f, int exponent);
    /// Near a normal law of deviation about 2^exponent.
    std::uint32_t normal(const gemm::operand_format& f, int exponent);
    /// A zero of either sign, a subnormal or one of the smallest normal numbers.
    std::uint32_t tiny(const gemm::operand_format& f);
    /// The scale code of 2^exponent or the nearest that there is.
    std::uint8_t scale(int exponent) const;

    /// make(format) for every element of A, then of B.
    template <typename Make>
    void elements(Make make) {
        for (std::uint32_t& x : tile_.a) x = make(a_format());
        for (std::uint32_t& x : tile_.b) x = make(b_format());
    }
    template <typename Make>
    void accumulators(Make make) {
        for (std::uint32_t& x : tile_.c) x = make(c_format());
    }
    /// make() for every scale; nothing where there are none.
    template <typename Make>
    void scales(Make make) {
        for (std::uint8_t& x : tile_.sfa) x = make();
        for (std::uint8_t& x : tile_.sfb) x = make();
    }
    /// 2^exponent_a for all of A, 2^exponent_b for all of B; their sum as far as they can be had.
    int uniform_scales(int exponent_a, int exponent_b);

  private:
    const mma_case& what_;
    word_stream& words_;
    std::uint64_t index_;
    mma_tile& tile_;
};

}  // namespace mx::conformance::vectors
