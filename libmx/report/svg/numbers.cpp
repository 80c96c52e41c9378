// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/svg/numbers.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "libmx/report/cells.hpp"

namespace mx::report::svg {

double number_of(std::string_view text) {
    double x = 0;
    std::from_chars(text.data(), text.data() + text.size(), x);
    return x;
}

namespace {

constexpr std::string_view minus = "\xe2\x88\x92";

// The ASCII digits `plain` in typographic form: minus sign and thousands separators.
std::string typeset(const std::string& plain) {
    const bool negative = plain.front() == '-';
    std::string out = plain.substr(negative ? 1 : 0);
    const std::size_t whole = std::min(out.find('.'), out.size());
    for (std::size_t at = whole; at > 3;) {
        at -= 3;
        out.insert(at, 1, ',');
    }
    return negative ? std::string(minus) + out : out;
}

// The double nearest to the first twelve digits of `x`, so that 100 * 0.07 and 3 * 0.1 become 7 and
// 0.3.
double twelve_digits(double x) { return number_of(fmt::format("{:.11e}", x)); }

// Trailing zeros mean that digits were rounded away; exact numbers have none.
std::string without_tail(const std::string& plain, double value) {
    if (plain.find('.') == std::string::npos) return plain;
    const std::size_t mark = std::min(plain.find('e'), plain.size());
    std::string digits = plain.substr(0, mark);
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
    const std::string text = digits + plain.substr(mark);
    return number_of(text) == twelve_digits(value) ? text : plain;
}

bool has_unit(const axis& a) { return !a.unit.empty() && !a.share && a.unit != "share"; }

}  // namespace

std::string power_text(int exponent) {
    static constexpr std::string_view raised[] = {
        "\xe2\x81\xb0", "\xc2\xb9",     "\xc2\xb2",     "\xc2\xb3",     "\xe2\x81\xb4",
        "\xe2\x81\xb5", "\xe2\x81\xb6", "\xe2\x81\xb7", "\xe2\x81\xb8", "\xe2\x81\xb9"};
    std::string out = exponent < 0 ? "10\xe2\x81\xbb" : "10";
    for (const char c : fmt::format("{}", std::abs(exponent))) out += raised[c - '0'];
    return out;
}

std::string number_text(double value, int digits) {
    if (value == 0) return "0";
    const double size = std::abs(value);
    if (size >= 1e-4 && size < 1e6) {
        // Beyond the requested number of digits, the integer part is written in full.
        const std::string text = significant_text(value, digits);
        const bool plain = text.find('e') == std::string::npos;
        return typeset(plain ? without_tail(text, value) : fmt::format("{:.0f}", value));
    }
    const std::string text = without_tail(fmt::format("{:.{}e}", value, digits - 1), value);
    const std::size_t mark = text.find('e');
    const int exponent = std::atoi(text.c_str() + mark + 1);
    const std::string mantissa = typeset(text.substr(0, mark));
    std::string power = power_text(exponent);
    if (mantissa == "1") return power;
    return mantissa + "\xc3\x97" + power;
}

std::string fixed_text(double value, int decimals) {
    const std::string text = fmt::format("{:.{}f}", value, decimals);
    // A value that rounds to zero has no sign.
    const bool zero = text.find_first_not_of("-0.") == std::string::npos;
    return typeset(zero && text.front() == '-' ? text.substr(1) : text);
}

std::string short_text(const axis& a, double value, int digits) {
    return number_text(a.share ? 100 * value : value, digits);
}

std::string value_text(const axis& a, double value) {
    std::string text = number_text(a.share ? 100 * value : value, 4);
    if (a.share) text += '%';
    if (has_unit(a)) text += " " + a.unit;
    return text;
}

std::string title_text(const axis& a) {
    if (!has_unit(a)) return a.title;
    return a.title.empty() ? a.unit : a.title + " (" + a.unit + ")";
}

}  // namespace mx::report::svg
