// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/accumulator_keys.hpp"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"

namespace mx::gemm {
namespace {

template <int accumulator::*field>
void set_integer(accumulator& a, std::string_view text) {
    int n = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (status != std::errc{} || end != text.data() + text.size()) {
        throw base::error(base::error_kind::usage,
                          fmt::format("'{}' is not an integer in an accumulator's spelling", text));
    }
    a.*field = n;
}

template <int accumulator::*field>
std::string get_integer(const accumulator& a) {
    return std::to_string(a.*field);
}

template <auto field, const auto& words>
void set_word(accumulator& a, std::string_view text) {
    std::vector<std::string_view> names;
    for (const auto& w : words) {
        if (w.name == text) {
            a.*field = w.value;
            return;
        }
        names.push_back(w.name);
    }
    throw base::error(base::error_kind::usage,
                      base::unknown("policy of an accumulator", text, names));
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

using a = accumulator;
constexpr std::array keys{
    accumulator_key{"fused_length", "1..1024", "L: products per step", has_steps,
                    set_integer<&a::fused_length>, get_integer<&a::fused_length>},
    accumulator_key{"group_length", "1..1024", "products per exact group", in_groups,
                    set_integer<&a::group_length>, get_integer<&a::group_length>},
    accumulator_key{"fraction_bits", "1..48", "F: bits kept below the alignment exponent",
                    has_steps, set_integer<&a::fraction_bits>, get_integer<&a::fraction_bits>},
    accumulator_key{"wide_fraction_bits", "F..48", "F2: bits kept of the sum with the accumulator",
                    in_two, set_integer<&a::wide_fraction_bits>,
                    get_integer<&a::wide_fraction_bits>},
    accumulator_key{"exponent_floor", "-1000..200", "the least alignment exponent", has_steps,
                    set_integer<&a::exponent_floor>, get_integer<&a::exponent_floor>},
    accumulator_key{"convert", "rz-fp32, rz-e8m13, rne-fp16, rne-fp32",
                    "how a step's sum becomes an accumulator", has_steps,
                    set_word<&a::convert, conversion_words>,
                    get_word<&a::convert, conversion_words>},
    accumulator_key{"subnormals", "least-exponent, leading-bit", "where subnormal operands align",
                    has_steps, set_word<&a::subnormals, subnormal_words>,
                    get_word<&a::subnormals, subnormal_words>},
    accumulator_key{"zero", "plus, kept", "the sign of an exact zero; kept: -0 of nothing but -0",
                    in_one_alignment, set_word<&a::zero, zero_words>,
                    get_word<&a::zero, zero_words>},
    accumulator_key{"underflow", "plus, kept", "the sign of what rounds to zero", has_steps,
                    set_word<&a::underflow, zero_words>, get_word<&a::underflow, zero_words>},
    accumulator_key{"c", "term, afterwards, ignored", "how the accumulator enters", has_steps,
                    set_word<&a::c, entry_words>, get_word<&a::c, entry_words>},
    accumulator_key{"promote", "0, or a multiple of L",
                    "after so many k the sum is added to a float32 sum; 0: never", in_chains,
                    set_integer<&a::promote_every>, get_integer<&a::promote_every>},
};

}  // namespace

std::span<const accumulator_key> accumulator_keys() { return keys; }

}  // namespace mx::gemm
