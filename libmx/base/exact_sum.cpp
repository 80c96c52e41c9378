// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/exact_sum.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <iterator>
#include <type_traits>

#include "libmx/base/parsed.hpp"

namespace mx::base {

static_assert(std::is_trivially_copyable_v<exact_sum>);

void exact_sum::add(double value, std::uint64_t times) {
    const std::uint64_t u = bits_of(value);
    const int field = static_cast<int>((u >> 52) & 0x7ff);
    std::uint64_t significand = u & ((std::uint64_t{1} << 52) - 1);
    if (field != 0) significand |= std::uint64_t{1} << 52;
    const int position = field == 0 ? 0 : field - 1;
    const int shift = position % 32;
    const std::int64_t sign = (u >> 63) != 0 ? -1 : 1;
    // By halves of both factors: each product adds less than 2^32 to three digits.
    for (std::size_t i = 0; i < 2; ++i) {
        const std::uint64_t a = significand >> (32 * i) & 0xffffffffu;
        for (std::size_t k = 0; k < 2; ++k) {
            const std::uint64_t product = a * (times >> (32 * k) & 0xffffffffu);
            if (product == 0) continue;
            const std::size_t first = static_cast<std::size_t>(position / 32) + i + k;
            const std::uint64_t low = product << shift;
            const std::uint64_t high = shift == 0 ? 0 : product >> (64 - shift);
            digit_[first] += sign * static_cast<std::int64_t>(low & 0xffffffffu);
            digit_[first + 1] += sign * static_cast<std::int64_t>(low >> 32);
            digit_[first + 2] += sign * static_cast<std::int64_t>(high);
            ++pending_;
        }
    }
    if (pending_ >= carry_limit) carry();
}

void exact_sum::merge(const exact_sum& other) {
    if (other.pending_ == 0) return;
    // Digits grow with the additions behind them, so carries can wait as long as those are few.
    for (std::size_t i = 0; i < digits; ++i) digit_[i] += other.digit_[i];
    pending_ += other.pending_ + 1;
    if (pending_ >= carry_limit) carry();
}

void exact_sum::subtract(const exact_sum& other) {
    if (other.pending_ == 0) return;
    for (std::size_t i = 0; i < digits; ++i) digit_[i] -= other.digit_[i];
    pending_ += other.pending_ + 1;
    if (pending_ >= carry_limit) carry();
}

double exact_sum::value() const {
    exact_sum s = *this;
    s.carry();
    // After a carry pass every digit but the top one is in [0, 2^32); the top one has the sign.
    const bool negative = s.digit_[digits - 1] < 0;
    if (negative) {
        for (std::int64_t& d : s.digit_) d = -d;
        s.carry();
    }
    std::size_t top = digits;
    while (top > 0 && s.digit_[top - 1] == 0) --top;
    if (top == 0) return 0.0;
    --top;
    // Collect the leading 64 bits and a sticky bit for everything below.
    const auto lead = static_cast<std::uint64_t>(s.digit_[top]);
    const int lead_bits = 64 - std::countl_zero(lead);
    // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): lead is not zero
    std::uint64_t window = lead << (64 - lead_bits);
    int filled = lead_bits;
    bool sticky = false;
    for (std::size_t i = top; i-- > 0;) {
        const auto digit = static_cast<std::uint64_t>(s.digit_[i]);
        if (filled < 64) {
            const int room = 64 - filled;
            if (room >= 32) {
                window |= digit << (room - 32);
                filled += 32;
            } else {
                window |= digit >> (32 - room);
                sticky = sticky || (digit & ((std::uint64_t{1} << (32 - room)) - 1)) != 0;
                filled = 64;
            }
        } else {
            sticky = sticky || digit != 0;
        }
    }
    // window * 2^exponent, window normalized to 64 bits.
    const int exponent = static_cast<int>(top) * 32 - 1074 + lead_bits - 64;
    const int keep = exponent < -1074 ? -1074 - exponent : 0;  // extra bits below the subnormals
    const int drop = keep > 11 ? keep : 11;
    double magnitude = 0.0;
    if (drop >= 64) {
        // The whole value lies below the last subnormal bit; cannot happen, digit 0 weighs it.
        magnitude = 0.0;
    } else {
        std::uint64_t kept = window >> drop;
        const std::uint64_t rest = window & ((std::uint64_t{1} << drop) - 1);
        const std::uint64_t half = std::uint64_t{1} << (drop - 1);
        if (rest > half || (rest == half && (sticky || (kept & 1) != 0))) ++kept;
        magnitude = std::ldexp(static_cast<double>(kept), exponent + drop);
    }
    return negative ? -magnitude : magnitude;
}

std::string exact_sum::text() const {
    exact_sum s = *this;
    s.carry();
    std::string text;
    if (s.digit_[digits - 1] < 0) {
        text = "-";
        for (std::int64_t& d : s.digit_) d = -d;
        s.carry();
    }
    std::size_t first = 0, end = digits;
    while (end > 0 && s.digit_[end - 1] == 0) --end;
    if (end == 0) return "0";
    while (s.digit_[first] == 0) ++first;
    fmt::format_to(std::back_inserter(text), "{:x}:{:x}", first, s.digit_[end - 1]);
    for (std::size_t i = end - 1; i-- > first;) {
        fmt::format_to(std::back_inserter(text), "{:08x}", s.digit_[i]);
    }
    return text;
}

bool exact_sum::read(std::string_view text, exact_sum& to) {
    to = {};
    if (text == "0") return true;
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return false;
    const auto first = parsed<std::size_t>(text.substr(0, colon), 16);
    text.remove_prefix(colon + 1);
    // The top digit of a sum that was carried has a sign and few bits.
    const std::size_t count = (text.size() + 7) / 8;
    if (!first || count == 0 || count > digits || *first > digits - count) return false;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t length = i + 1 < count ? 8 : text.size();
        const auto digit = parsed<std::uint32_t>(text.substr(text.size() - length), 16);
        text.remove_suffix(length);
        if (!digit) return false;
        to.digit_[*first + i] = negative ? -std::int64_t{*digit} : std::int64_t{*digit};
    }
    to.pending_ = 1;
    return true;
}

bool operator==(const exact_sum& a, const exact_sum& b) {
    exact_sum x = a;
    exact_sum y = b;
    x.carry();
    y.carry();
    return x.digit_ == y.digit_;
}

}  // namespace mx::base
