// SPDX-License-Identifier: Apache-2.0
// A sum of doubles without rounding: a fixed-point number wide enough for every finite double
// (Kulisch). Adding and merging are exact, hence associative and commutative: threads, ranks and
// devices may combine partial sums in any order and grouping and get the same bits.
#pragma once

#include <array>
#include <cstdint>

namespace mx::base {

/// Trivially copyable; about 550 bytes. NaN and Inf are a precondition violation.
class exact_sum {
  public:
    /// Adds a finite value exactly.
    void add(double value);
    /// Adds another sum exactly.
    void merge(const exact_sum& other);
    /// Takes another sum away exactly.
    void subtract(const exact_sum& other);
    /// The sum rounded once, to nearest even; +0 for an empty or cancelled sum. Inf when the
    /// exact sum rounds beyond the largest double.
    double value() const;

    friend bool operator==(const exact_sum& a, const exact_sum& b);

  private:
    // Digit i weighs 2^(32*i - 1074). Digits are kept as signed 64-bit numbers so that carries can
    // wait; `pending` counts additions since the last carry pass.
    static constexpr int digits = 68;
    void carry();
    std::array<std::int64_t, digits> digit_{};
    std::int64_t pending_ = 0;
};

}  // namespace mx::base
