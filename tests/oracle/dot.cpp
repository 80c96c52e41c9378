// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/dot.hpp"

#include <algorithm>

namespace mx::oracle {
namespace {

using boost::multiprecision::cpp_int;

rational magnitude_of(const rational& x) { return x < 0 ? rational(-x) : x; }

// floor(x) for x >= 0.
cpp_int whole_part(const rational& x) {
    return boost::multiprecision::numerator(x) / boost::multiprecision::denominator(x);
}

// The multiple of `unit` next to x toward zero.
rational cut(const rational& x, const rational& unit) {
    const rational whole(whole_part(magnitude_of(x) / unit));
    return x < 0 ? rational(-whole * unit) : rational(whole * unit);
}

// The multiple of `unit` next to x downward.
rational cut_down(const rational& x, const rational& unit) {
    const rational toward_zero = cut(x, unit);
    return x < toward_zero ? rational(toward_zero - unit) : toward_zero;
}

// The e with 2^e <= x < 2^(e+1), x > 0.
int leading_exponent(const rational& x) {
    const int guess = static_cast<int>(msb(boost::multiprecision::numerator(x))) -
                      static_cast<int>(msb(boost::multiprecision::denominator(x)));
    return x < power_of_two(guess) ? guess - 1 : guess;
}

std::uint32_t sign_position(const operand_facts& f) {
    return static_cast<std::uint32_t>(f.exponent_bits + f.mantissa_bits);
}

std::uint32_t infinity_of(const operand_facts& f, bool negative) {
    const std::uint32_t fields = (1u << f.exponent_bits) - 1u;
    return fields << f.mantissa_bits | (negative ? 1u : 0u) << sign_position(f);
}

struct cut_sum {
    rational sum = 0;
    int exponent = 0;
    bool any = false;
};

// Products that are not zero, cut F bits below the largest exponent among them.
cut_sum cut_products(const std::vector<addend>& products, int fraction_bits) {
    cut_sum s;
    for (const addend& p : products) {
        if (p.value == 0) continue;
        s.exponent = s.any ? std::max(s.exponent, p.exponent) : p.exponent;
        s.any = true;
    }
    for (const addend& p : products) {
        if (p.value != 0) s.sum += cut(p.value, power_of_two(s.exponent - fraction_bits));
    }
    return s;
}

}  // namespace

addend read_code(const operand_facts& f, std::uint32_t code) {
    const std::uint32_t word = code >> f.dropped_bits;
    const std::uint32_t magnitude = word % (1u << sign_position(f));
    const std::uint32_t fractions = 1u << f.mantissa_bits;
    const std::uint32_t field = magnitude / fractions;
    const std::uint32_t fraction = magnitude % fractions;
    const std::uint32_t last = (1u << f.exponent_bits) - 1u;
    addend x;
    x.negative = (word >> sign_position(f)) % 2 == 1;
    if (f.specials == code_specials::ieee && field == last) {
        x.what = fraction == 0 ? number_class::infinite : number_class::nan;
        return x;
    }
    const bool nan =
        (f.specials == code_specials::fn && field == last && fraction == fractions - 1) ||
        (f.specials == code_specials::fnuz && x.negative && magnitude == 0);
    if (nan) {
        x.what = number_class::nan;
        return x;
    }
    x.exponent = (field == 0 ? 1 : static_cast<int>(field)) - f.bias;
    x.value = (rational(fraction, fractions) + (field == 0 ? 0 : 1)) * power_of_two(x.exponent);
    if (x.negative) x.value = -x.value;
    return x;
}

addend read_e8m0(unsigned code) {
    const int exponent = static_cast<int>(code) - 127;
    if (code == 255) return {number_class::nan, false, 0, 0};
    return {number_class::finite, false, power_of_two(exponent), exponent};
}

addend read_ue4m3(unsigned code) { return read_code({4, 3, 7, code_specials::fn}, code % 128); }

addend product(const addend& a, const addend& b) {
    addend p;
    p.negative = a.negative != b.negative;
    p.exponent = a.exponent + b.exponent;
    const auto is_zero = [](const addend& x) {
        return x.what == number_class::finite && x.value == 0;
    };
    if (a.what == number_class::nan || b.what == number_class::nan) {
        p.what = number_class::nan;
    } else if (a.what == number_class::infinite || b.what == number_class::infinite) {
        p.what = is_zero(a) || is_zero(b) ? number_class::nan : number_class::infinite;
    } else {
        p.value = a.value * b.value;
    }
    return p;
}

std::uint32_t round_sum(const sum_target& to, const rational& value) {
    if (value == 0) return 0;
    const operand_facts& f = to.format;
    const bool negative = value < 0;
    const rational x = magnitude_of(value);
    const int least = 1 - f.bias;
    const int largest = (1 << f.exponent_bits) - 2 - f.bias;
    const int exponent = std::max(leading_exponent(x), least);
    if (exponent > largest) return infinity_of(f, negative);
    const rational unit = power_of_two(exponent - to.kept_bits);
    cpp_int steps = whole_part(x / unit);
    const rational rest = x / unit - rational(steps);
    const bool up = rest > rational(1, 2) || (rest == rational(1, 2) && steps % 2 == 1);
    if (to.nearest && up) ++steps;
    // The value on the grid, normalized to its own leading bit.
    const rational rounded = rational(steps) * unit;
    std::uint32_t code = 0;
    if (rounded != 0) {
        const int e = std::max(leading_exponent(rounded), least);
        if (e > largest) return infinity_of(f, negative);
        const rational significand = rounded / power_of_two(e);
        const bool normal = significand >= 1;
        const rational fraction =
            (normal ? rational(significand - 1) : significand) * power_of_two(f.mantissa_bits);
        const auto field = static_cast<std::uint32_t>(normal ? e + f.bias : 0);
        code = field << f.mantissa_bits | static_cast<std::uint32_t>(whole_part(fraction));
    }
    return code | (negative ? 1u : 0u) << sign_position(f);
}

std::uint32_t written_nan(const sum_target& to) { return (1u << sign_position(to.format)) - 1u; }

bool special_sum(const sum_target& to, const std::vector<addend>& terms, std::uint32_t& bits) {
    bool nan = false, plus = false, minus = false;
    for (const addend& t : terms) {
        if (t.what == number_class::nan) nan = true;
        if (t.what == number_class::infinite) (t.negative ? minus : plus) = true;
    }
    if (nan || (plus && minus)) {
        bits = written_nan(to);
    } else if (plus || minus) {
        bits = infinity_of(to.format, minus);
    }
    return nan || plus || minus;
}

std::uint32_t fused_sum(const sum_target& to, int fraction_bits, int floor, const fused_terms& t) {
    std::uint32_t special = 0;
    if (special_sum(to, t.terms, special)) return special;
    int top = floor;
    for (std::size_t i = 0; i < t.terms.size(); ++i) {
        if (t.live[i]) top = std::max(top, t.terms[i].exponent);
    }
    rational sum = 0;
    for (std::size_t i = 0; i < t.terms.size(); ++i) {
        if (t.live[i]) sum += cut(t.terms[i].value, power_of_two(top - fraction_bits));
    }
    return round_sum(to, sum);
}

std::uint32_t two_sided_sum(const sum_target& to, int fraction_bits, int wide_fraction_bits,
                            const std::vector<std::vector<addend>>& products, const addend& c,
                            bool far_c_drops) {
    std::vector<addend> all{c};
    for (const auto& list : products) all.insert(all.end(), list.begin(), list.end());
    std::uint32_t special = 0;
    if (special_sum(to, all, special)) return special;

    cut_sum total;
    std::vector<cut_sum> sums;
    for (const auto& list : products) {
        sums.push_back(cut_products(list, fraction_bits));
        if (!sums.back().any) continue;
        total.exponent =
            total.any ? std::max(total.exponent, sums.back().exponent) : sums.back().exponent;
        total.any = true;
    }
    for (const cut_sum& s : sums) {
        if (s.any) total.sum += cut_down(s.sum, power_of_two(total.exponent - fraction_bits));
    }
    int top = std::max(c.exponent, -126);
    if (total.any) top = std::max(top, total.exponent);
    rational sum = cut_down(total.sum, power_of_two(top - wide_fraction_bits - 1));
    if (!far_c_drops || c.exponent >= top - fraction_bits - 1) {
        sum += cut_down(c.value, power_of_two(top - fraction_bits));
    }
    if (sum == 0) return 0;
    const int lead = std::max(leading_exponent(magnitude_of(sum)), -126);
    return round_sum(to, cut_down(sum, power_of_two(lead - wide_fraction_bits)));
}

std::uint32_t exact_sum_f32(const std::vector<addend>& terms) {
    const sum_target to{f32_facts, 23, true};
    std::uint32_t special = 0;
    if (special_sum(to, terms, special)) return special;
    rational sum = 0;
    bool minus_zeros = true;
    for (const addend& t : terms) {
        sum += t.value;
        minus_zeros = minus_zeros && t.value == 0 && t.negative;
    }
    return sum == 0 && minus_zeros ? 0x80000000u : round_sum(to, sum);
}

}  // namespace mx::oracle
