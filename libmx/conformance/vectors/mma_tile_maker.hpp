// SPDX-License-Identifier: Apache-2.0
// Building blocks of the distributions of matrix inputs: codes by exponent, and positions in a
// tile.
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

/// The code nearest to significand * 2^exponent, ties away from zero; beyond the largest finite
/// number, that number. Dropped bits are 0.
std::uint32_t nearest_code(const gemm::operand_format& f, bool negative, std::uint64_t significand,
                           int exponent);

/// The code of 2^exponent; outside the format's range, of the nearest end of the range.
std::uint32_t power_code(const gemm::operand_format& f, int exponent);

/// `code` with its sign inverted.
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
    /// A number with this exponent and a random mantissa; outside the range, subnormal or the
    /// largest.
    std::uint32_t near(const gemm::operand_format& f, int exponent);
    /// Approximately normal with a standard deviation of about 2^exponent.
    std::uint32_t normal(const gemm::operand_format& f, int exponent);
    /// A zero of either sign, a subnormal or one of the smallest normal numbers.
    std::uint32_t tiny(const gemm::operand_format& f);
    /// The scale code nearest to 2^exponent.
    std::uint8_t scale(int exponent) const;

    /// Sets every element of A, then of B, to make(format).
    template <typename Make>
    void elements(Make make) {
        for (std::uint32_t& x : tile_.a) x = make(a_format());
        for (std::uint32_t& x : tile_.b) x = make(b_format());
    }
    template <typename Make>
    void accumulators(Make make) {
        for (std::uint32_t& x : tile_.c) x = make(c_format());
    }
    /// Sets every scale to make(); does nothing without scales.
    template <typename Make>
    void scales(Make make) {
        for (std::uint8_t& x : tile_.sfa) x = make();
        for (std::uint8_t& x : tile_.sfb) x = make();
    }
    /// Sets all scales of A to 2^exponent_a and of B to 2^exponent_b. Returns the sum of the
    /// exponents that the scale format could represent.
    int uniform_scales(int exponent_a, int exponent_b);

  private:
    const mma_case& what_;
    word_stream& words_;
    std::uint64_t index_;
    mma_tile& tile_;
};

}  // namespace mx::conformance::vectors
