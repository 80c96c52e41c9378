// SPDX-License-Identifier: Apache-2.0
// A sum of doubles without rounding: a fixed-point number wide enough for every finite double
// (Kulisch). Adding and merging are exact, hence associative and commutative: threads, ranks and
// devices may combine partial sums in any order and grouping and get the same bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "libmx/base/bits.hpp"

namespace mx::base {

/// Trivially copyable; about 550 bytes. NaN and Inf are a precondition violation.
class exact_sum {
  public:
    /// Adds a finite value exactly.
    MX_HD_CALL void add(double value);
    /// Adds a finite value as often as `times` says, exactly.
    void add(double value, std::uint64_t times);
    /// Adds (high * 2^64 + low) * 2^exponent exactly; exponent from -1074 to 900. `add(digit, n)`
    /// adds n, below 2^32 in magnitude, to a digit: atomically where threads share the sum. Not
    /// counted: settle() comes before anything else, after 2^30 of them at most.
    template <typename Add>
    MX_HD void add_uncounted(std::uint64_t low, std::int64_t high, int exponent, Add&& add);
    void settle() { carry(); }
    /// Adds another sum exactly.
    void merge(const exact_sum& other);
    /// Subtracts another sum exactly.
    void subtract(const exact_sum& other);
    /// The sum rounded once, to nearest even; +0 for an empty or cancelled sum. Inf when the
    /// exact sum rounds beyond the largest double.
    double value() const;
    /// A digit, to be changed by threads that add up their sums digit by digit. Not counted,
    /// either.
    MX_HD std::int64_t& digit(std::size_t i) { return digit_[i]; }
    static constexpr std::size_t digits = 68;
    /// -1, 0 or 1: below, equal to, or above zero.
    MX_HD int sign();

    /// The sum in digits, equal for equal sums: "0", or "[-]k:h", h * 2^(32*k - 1074) with h in
    /// hexadecimal digits and k (hexadecimal, too) as large as it can be.
    std::string text() const;
    /// The sum that text() wrote; false for other texts.
    static bool read(std::string_view text, exact_sum& to);

    friend bool operator==(const exact_sum& a, const exact_sum& b);

  private:
    // Digit i weighs 2^(32*i - 1074). Digits are kept as signed 64-bit numbers so that carries can
    // wait; `pending` counts additions since the last carry pass, which counts as one: only of an
    // empty sum it is 0.
    // Each addition changes a digit by less than 2^32, and so do the digits of a carried sum when
    // they are merged: 2^29 of them on either side of a merger stay inside 63 bits.
    static constexpr std::int64_t carry_limit = std::int64_t{1} << 29;
    MX_HD_CALL void carry();
    std::array<std::int64_t, digits> digit_{};
    std::int64_t pending_ = 0;
};

MX_HD_CALL inline void exact_sum::carry() {
    for (std::size_t i = 0; i + 1 < digits; ++i) {
        const std::int64_t up = digit_[i] >> 32;  // arithmetic shift: floor
        digit_[i] -= up * (std::int64_t{1} << 32);
        digit_[i + 1] += up;
    }
    pending_ = 1;
}

MX_HD_CALL inline void exact_sum::add(double value) {
    const std::uint64_t u = bits_of(value);
    const int field = static_cast<int>((u >> 52) & 0x7ff);
    std::uint64_t significand = u & ((std::uint64_t{1} << 52) - 1);
    if (field != 0) significand |= std::uint64_t{1} << 52;
    if (significand == 0) return;
    // value = significand * 2^(position - 1074).
    const int position = field == 0 ? 0 : field - 1;
    const auto first = static_cast<std::size_t>(position / 32);
    const int shift = position % 32;
    const std::uint64_t low = significand << shift;
    const std::uint64_t high = shift == 0 ? 0 : significand >> (64 - shift);
    const std::int64_t sign = (u >> 63) != 0 ? -1 : 1;
    digit_[first] += sign * static_cast<std::int64_t>(low & 0xffffffffu);
    digit_[first + 1] += sign * static_cast<std::int64_t>(low >> 32);
    digit_[first + 2] += sign * static_cast<std::int64_t>(high);
    if (++pending_ >= carry_limit) carry();
}

template <typename Add>
MX_HD inline void exact_sum::add_uncounted(std::uint64_t low, std::int64_t high, int exponent,
                                           Add&& add) {
    const bool negative = high < 0;
    std::uint64_t top = static_cast<std::uint64_t>(high);
    if (negative) {
        low = ~low + 1;
        top = ~top + (low == 0 ? 1u : 0u);
    }
    const int position = exponent + 1074;
    const auto first = static_cast<std::size_t>(position / 32);
    const int shift = position % 32;
    std::uint64_t carried = 0;
    for (std::size_t i = 0; i < 5; ++i) {
        const std::uint64_t word = (i < 2 ? low : top) >> (i % 2 * 32) & 0xffffffffu;
        carried |= i < 4 ? word << shift : 0;
        const auto n = static_cast<std::int64_t>(carried & 0xffffffffu);
        if (n != 0) add(digit_[first + i], negative ? -n : n);
        carried >>= 32;
    }
}

MX_HD inline int exact_sum::sign() {
    carry();
    // Every digit but the top one is in [0, 2^32); the top one has the sign.
    if (digit_[digits - 1] < 0) return -1;
    std::int64_t any = 0;
    for (const std::int64_t digit : digit_) any |= digit;
    return any != 0 ? 1 : 0;
}

}  // namespace mx::base
