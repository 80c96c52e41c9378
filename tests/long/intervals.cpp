// SPDX-License-Identifier: Apache-2.0
#include "tests/long/intervals.hpp"

#include <bit>

#include "libmx/oracle/value_list.hpp"

namespace mx::oracle {
namespace {

constexpr std::uint32_t infinity = 0x7f800000u;

// A magnitude at or beyond which (or, if not `at`, beyond which) the code is another.
struct threshold {
    rational magnitude;
    bool at;
};

// The bits of the smallest float32 at or beyond the threshold; those of Inf if there is none.
std::uint32_t first_reaching(const threshold& t) {
    std::uint32_t low = 0;
    std::uint32_t high = infinity;
    while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        const rational x = exact(std::bit_cast<float>(middle));
        const bool reaches = t.at ? x >= t.magnitude : x > t.magnitude;
        (reaches ? high : low) = reaches ? middle : middle + 1;
    }
    return low;
}

// The threshold between a magnitude `inner` and `outer`, its neighbour away from zero.
threshold between(const listed_value& inner, const listed_value& outer, int quantum_exponent,
                  bool powers_only, const rounding_choice& choice, bool negative) {
    const rational quantum = power_of_two(quantum_exponent);
    const rational a = std::abs(inner.quanta) * quantum;
    const rational b = std::abs(outer.quanta) * quantum;
    const rational middle = (a + b) / 2;
    switch (choice.how) {
        case format::rounding::zero:
            return {b, true};
        case format::rounding::up:
            return negative ? threshold{b, true} : threshold{a, false};
        case format::rounding::down:
            return negative ? threshold{a, false} : threshold{b, true};
        case format::rounding::away:
            return {middle, true};
        case format::rounding::ties_to_zero:
            return {middle, false};
        case format::rounding::rtne:
        case format::rounding::stochastic:
            break;
    }
    if (powers_only && choice.ties == format::tie_rule::up) return {middle, inner.quanta != 0};
    return {middle, outer.even};
}

}  // namespace

std::vector<code_interval> intervals(const value_list& list, const rounding_choice& choice,
                                     bool negative, bool saturate) {
    const format::element_format& f = *list.element;
    const bool mirrored = negative && f.has_sign;
    // The values of this sign from zero outward; with the format's own negatives, if any.
    std::vector<listed_value> outward;
    for (const listed_value& v : list.values) {
        if (mirrored ? v.quanta <= 0 : v.quanta >= 0) outward.push_back(v);
    }
    if (mirrored) outward = {outward.rbegin(), outward.rend()};

    const bool floating = f.kind == format::number_kind::floating;
    const unsigned sign = mirrored && floating ? 1u << (code_bits(f) - 1) : 0u;
    const std::uint32_t sign_bit = negative ? 0x80000000u : 0u;
    if (negative && f.clamps_negative) return {{sign_bit, 0}};
    const int spilled = list.infinity_code >= 0 ? list.infinity_code : list.nan_code;
    std::vector<code_interval> out;
    out.push_back({sign_bit, static_cast<unsigned>(outward[0].code) | sign});
    for (std::size_t i = 1; i < outward.size(); ++i) {
        const bool beyond = outward[i].code < 0;
        if (beyond && (saturate || spilled < 0)) break;
        const threshold t = between(outward[i - 1], outward[i], list.quantum_exponent,
                                    floating && f.mantissa_bits == 0, choice, mirrored);
        const std::uint32_t first = first_reaching(t);
        if (first >= infinity) break;
        const unsigned code =
            beyond ? static_cast<unsigned>(spilled) | sign : static_cast<unsigned>(outward[i].code);
        out.push_back({sign_bit | first, code});
        if (beyond) break;
    }
    return out;
}

}  // namespace mx::oracle
