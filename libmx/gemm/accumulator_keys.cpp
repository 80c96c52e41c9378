// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/accumulator_keys.hpp"

#include <fmt/format.h>

#include <vector>

#include "libmx/base/parsed.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/gemm/accumulators.hpp"

namespace mx::gemm {
namespace {

template <int accumulator::*field>
void set_integer(accumulator& a, std::string_view text) {
    const std::optional<int> n = base::parsed<int>(text);
    if (!n) base::refuse("'{}' is not an integer in an accumulator's spelling", text);
    a.*field = *n;
}

template <int accumulator::*field>
std::string get_integer(const accumulator& a) {
    return std::to_string(a.*field);
}

template <auto field, const auto& words>
void set_word(accumulator& a, std::string_view text) {
    a.*field = base::row_named(words, "policy of an accumulator", text).value;
}

template <auto field, const auto& words>
std::string get_word(const accumulator& a) {
    return std::string(word_of(words, a.*field).name);
}

bool in_one_alignment(algorithm how) {
    return how == algorithm::fused || how == algorithm::grouped;
}
bool in_groups(algorithm how) { return how == algorithm::grouped; }
bool in_two(algorithm how) { return how == algorithm::two_sided || how == algorithm::interleaved; }
bool in_chains(algorithm how) { return how != algorithm::exact; }

using edited = accumulator;
constexpr std::array keys{
    accumulator_key{"fused_length", "1..1024", "L: products per step", has_steps,
                    set_integer<&edited::fused_length>, get_integer<&edited::fused_length>},
    accumulator_key{"group_length", "1..1024", "products per exact group", in_groups,
                    set_integer<&edited::group_length>, get_integer<&edited::group_length>},
    accumulator_key{"fraction_bits", "1..48", "F: bits kept below the alignment exponent",
                    has_steps, set_integer<&edited::fraction_bits>,
                    get_integer<&edited::fraction_bits>},
    accumulator_key{"wide_fraction_bits", "F..48", "F2: bits kept of the sum with the accumulator",
                    in_two, set_integer<&edited::wide_fraction_bits>,
                    get_integer<&edited::wide_fraction_bits>},
    accumulator_key{"exponent_floor", "-1000..200", "the least alignment exponent", has_steps,
                    set_integer<&edited::exponent_floor>, get_integer<&edited::exponent_floor>},
    accumulator_key{"convert", "rz-fp32, rz-e8m13, rne-fp16, rne-fp32",
                    "how a step's sum becomes an accumulator", has_steps,
                    set_word<&edited::convert, conversion_words>,
                    get_word<&edited::convert, conversion_words>},
    accumulator_key{"subnormals", "least-exponent, leading-bit", "where subnormal operands align",
                    has_steps, set_word<&edited::subnormals, subnormal_words>,
                    get_word<&edited::subnormals, subnormal_words>},
    accumulator_key{"zero", "plus, kept", "the sign of an exact zero; kept: -0 if all terms are -0",
                    in_one_alignment, set_word<&edited::zero, zero_words>,
                    get_word<&edited::zero, zero_words>},
    accumulator_key{"underflow", "plus, kept", "the sign of what rounds to zero", has_steps,
                    set_word<&edited::underflow, zero_words>,
                    get_word<&edited::underflow, zero_words>},
    accumulator_key{"c", "term, afterwards, ignored", "how the accumulator enters", has_steps,
                    set_word<&edited::c, entry_words>, get_word<&edited::c, entry_words>},
    accumulator_key{"promote", "0, or a multiple of L",
                    "number of k after which the sum is added to a float32 sum; 0: never",
                    in_chains, set_integer<&edited::promote_every>,
                    get_integer<&edited::promote_every>},
};

void require(const accumulator& a, std::string_view field, int value, int low, int high) {
    if (value >= low && value <= high) return;
    base::refuse("accumulator '{}': {} is {}; give {} to {}", a.name, field, value, low, high);
}

const accumulator_key& key_named(std::string_view name, const accumulator& a) {
    std::vector<std::string_view> names;
    for (const accumulator_key& key : accumulator_keys()) {
        if (!key.applies(a.how)) continue;
        if (key.name == name) return key;
        names.push_back(key.name);
    }
    if (names.empty()) {
        base::refuse("accumulator {} has no field to change; leave '{}' out", a.name, name);
    }
    base::refuse(base::unknown(fmt::format("field of accumulator {}", a.name), name, names));
}

}  // namespace

std::span<const accumulator_key> accumulator_keys() { return keys; }

void validate(const accumulator& a) {
    if (has_steps(a.how)) {
        require(a, "fused_length", a.fused_length, 1, 1024);
        require(a, "fraction_bits", a.fraction_bits, 1, 48);
        require(a, "exponent_floor", a.exponent_floor, -1000, 200);
    }
    if (a.how == algorithm::grouped) {
        // Ten bits more than a product: 2^(48 + 10), plus the carries of four groups, still fits.
        require(a, "fraction_bits", a.fraction_bits, 1, 44);
        require(a, "group_length", a.group_length, 1, 16);
        if (a.fused_length % a.group_length != 0) {
            base::refuse("accumulator '{}': fused_length {} is no multiple of group_length {}",
                         a.name, a.fused_length, a.group_length);
        }
        if (16 % a.group_length != 0) {
            base::refuse("accumulator '{}': group_length {} does not divide the blocks of 16",
                         a.name, a.group_length);
        }
    }
    if (a.how == algorithm::two_sided || a.how == algorithm::interleaved) {
        require(a, "wide_fraction_bits", a.wide_fraction_bits, a.fraction_bits, 48);
        if (a.convert == conversion::rne_fp16) {
            base::refuse(
                "accumulator '{}': its accumulators are float32; convert=rne-fp16 does not apply",
                a.name);
        }
    }
    require(a, "promote", a.promote_every, 0, 1 << 30);
    const int at_once = a.fused_length * steps_at_once(a.enters);
    if (a.promote_every != 0 && at_once > 0 && a.promote_every % at_once != 0) {
        base::refuse("accumulator '{}': promote={} is no multiple of the {} products of a step",
                     a.name, a.promote_every, at_once);
    }
    if (a.enters == intake::halves && a.fused_length % 2 != 0) {
        base::refuse(
            "accumulator '{}': fused_length {} is odd, but its steps take two of every four k",
            a.name, a.fused_length);
    }
}

accumulator parse_accumulator(std::string_view text) {
    const std::size_t colon = text.find(':');
    const std::string_view name = text.substr(0, colon);
    accumulator a = base::row_named(accumulators(), "accumulator", name);
    std::string_view rest = colon == std::string_view::npos ? "" : text.substr(colon + 1);
    while (!rest.empty()) {
        const std::size_t comma = rest.find(',');
        const std::string_view part = rest.substr(0, comma);
        rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
        const std::size_t equals = part.find('=');
        if (equals == std::string_view::npos) {
            base::refuse("accumulator '{}': '{}' is not key=value", text, part);
        }
        key_named(part.substr(0, equals), a).set(a, part.substr(equals + 1));
    }
    validate(a);
    return a;
}

std::string to_string(const accumulator& a) {
    const accumulator* row = find_accumulator(a.name);
    std::string text(a.name);
    char separator = ':';
    for (const accumulator_key& key : accumulator_keys()) {
        if (!key.applies(a.how) || (row != nullptr && key.get(*row) == key.get(a))) continue;
        text += fmt::format("{}{}={}", separator, key.name, key.get(a));
        separator = ',';
    }
    return text;
}

}  // namespace mx::gemm
