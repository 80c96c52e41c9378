// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/dialect_columns.hpp"

#include <algorithm>
#include <array>

namespace mx::codec {
namespace {

// The names of an enumeration's values, in order.
template <typename Trait>
constexpr auto words = nullptr;

template <>
constexpr auto words<log2_kind> = std::array{
    trait_description{"exact", "from the exponent bits, never wrong"},
    trait_description{"float32", "a rounded float32 log2, off by one next to some powers of two"},
    trait_description{"bfloat16", "a log2 rounded to bfloat16, off by one below powers of two"},
};
template <>
constexpr auto words<even_kind> = std::array{
    trait_description{
        "tie up",
        "amax to the element's precision, ties up; reaching 2^128 is as an Inf in the block"},
    trait_description{"tie up, capped",
                      "amax to the element's precision, ties up; reaching 2^128 gives 2^127"},
    trait_description{"tie down",
                      "half an ulp of the element less one bit is added to amax, so ties go toward "
                      "the smaller scale; beyond Inf gives code 0 and elements of a NaN"},
    trait_description{"one bit", "amax to one mantissa bit for every element format: up from 1.75"},
};
template <>
constexpr auto words<emax_kind> = std::array{
    trait_description{"emax", "the exponent of the format's largest value"},
    trait_description{"bits", "the number of its exponent bits (E3M0: 3 where emax is 4)"},
};
template <>
constexpr auto words<rceil_kind> = std::array{
    trait_description{"exact", "by comparing mantissas"},
    trait_description{"times 1/max", "float32 amax * (1/max), then the exponent rounded up"},
    trait_description{"over max", "float32 amax / max, then the exponent rounded up"},
    trait_description{"log2", "ceil of the float32 log2 of float32 amax / max"},
};
template <>
constexpr auto words<inf_amax> = std::array{
    trait_description{"255", "code 255: the block is NaN"},
    trait_description{"254", "code 254, the largest scale"},
    trait_description{"252", "code 252, 2^125"},
    trait_description{"Inf", "the scale is Inf"},
    trait_description{"0", "code 0, and every element is that of a NaN"},
    trait_description{"FLT_MAX", "as if amax were the largest float32"},
    trait_description{"of 2^128", "as if amax were 2^128: 255 less emax; under rceil 254"},
};
template <>
constexpr auto words<nan_amax> = std::array{
    trait_description{"255", "code 255: the block is NaN"},
    trait_description{"ignored", "none: the scale is that of the other elements"},
    trait_description{"0", "code 0"},
    trait_description{
        "255, alone",
        "code 255: the block is NaN; except under rceil, finite elements have the codes of "
        "zeros"},
};
template <>
constexpr auto words<code_0_divisor> = std::array{
    trait_description{"2^-127", "the scale 2^-127"},
    trait_description{"1", "1: elements of a block with scale code 0 are not scaled"},
    trait_description{"2^-126", "2^-126, the smallest normal float32; under rceil 1"},
};
template <>
constexpr auto words<zero_block> = std::array{
    trait_description{"0", "code 0, 2^-127"},
    trait_description{"of 2^-126", "as if amax were 2^-126: code 1 if emax is 0, else code 0"},
    trait_description{"2^-23", "2^-23 if the scale is zero (under even: 2^-127)"},
    trait_description{"of 1e-8", "as if amax were 1e-8"},
};
template <>
constexpr auto words<scale_storage> = std::array{
    trait_description{"E8M0", "an E8M0 byte"},
    trait_description{"float32", "a float32, which the range of E8M0 does not bound"},
};
template <>
constexpr auto words<element_kind> = std::array{
    trait_description{"exact", "the exact quotient, rounded once"},
    trait_description{"float32",
                      "float32 arithmetic: |y| * 2^-e + 1/2 is rounded before it is truncated, e "
                      "comes from a float32 log2"},
    trait_description{"bfloat16", "bfloat16 arithmetic throughout"},
    trait_description{"fraction",
                      "the fraction above the leading power of two to nearest even (E3M0: ties "
                      "down)"},
    trait_description{"shifts",
                      "shifts of integers in narrow types: half away; E3M0 loses its smallest "
                      "binade, and a few values below 2^-10 become 0.5 or 2"},
};
template <>
constexpr auto words<zero_sign> = std::array{
    trait_description{"kept", "the sign of the input"},
    trait_description{"+0", "always +0"},
    trait_description{"-0", "a zero of either sign becomes -0; underflow keeps the sign"},
    trait_description{"+0, mixed", "a zero becomes +0; a number that underflows keeps its sign"},
};
template <>
constexpr auto words<inf_element> = std::array{
    trait_description{"max", "the largest value of its sign"},
    trait_description{"special", "NaN (E4M3) or Inf (E5M2), the largest value of formats without"},
    trait_description{"Inf", "stays Inf, which has no code"},
};
template <>
constexpr auto words<nan_element> = std::array{
    trait_description{"NaN, +max", "positive NaN; +max in formats without NaN"},
    trait_description{"NaN, -+0", "NaN; in formats without, a zero of the opposite sign"},
    trait_description{"NaN, 1.5", "NaN; in formats without, what the payload leaves (1.5 often)"},
    trait_description{"NaN", "stays NaN, which FP6, FP4 and integers have no code for"},
    trait_description{"0", "a zero, of the sign that a zero input gets"},
};
template <>
constexpr auto words<stochastic_kind> = std::array{
    trait_description{"k bits", "up iff floor(delta * 2^k) + r >= 2^k"},
    trait_description{"rounded", "the same after delta was rounded to k bits"},
    trait_description{"biased",
                      "23 - m random bits are added and the sum is still rounded to nearest: half "
                      "an ulp too large on average"},
    trait_description{"none", "not offered"},
};
template <>
constexpr auto words<int_range> = std::array{
    trait_description{"int8 full", "int8 uses -2^(n-1), other integers do not"},
    trait_description{"symmetric", "-2^(n-1) is never produced"},
};
template <>
constexpr auto words<two_level_kind> = std::array{
    trait_description{"exact", "exact quotients, each rounded once"},
    trait_description{"min 2^-6", "block scales of at least 2^-6, the smallest normal E4M3"},
    trait_description{
        "min 2^-6, /",
        "block scales of at least 2^-6; x is divided by the product of the scales, where "
        "the newer torchao multiplies by a reciprocal"},
    trait_description{"te", "the tensor scale is kept as its reciprocal; E4M3 subnormals are used"},
    trait_description{"ggml", "no tensor scale; half-away block scales that jump to 448 from 248"},
    trait_description{"0 is 1", "a block scale of zero becomes 1"},
    trait_description{"2688/amax", "the tensor scale is stored as 2688 / amax"},
    trait_description{"none", "not offered"},
    trait_description{"2^-23",
                      "no tensor scale; elements divided by 2^-23 where the scale is zero; a NaN "
                      "gives the scale 98304"},
    trait_description{"min 2^-17",
                      "block scales of at least the smallest UE5M3 (2^-6 in E4M3), also for "
                      "zeros and NaN"},
};
template <>
constexpr auto words<e8m0_cast> = std::array{
    trait_description{"up", "up to a power of two; beyond 2^127, Inf included, 254"},
    trait_description{"up, Inf 255", "up to a power of two; finite beyond 2^127 254, Inf 255"},
    trait_description{"up, else 255", "up to a power of two; beyond 2^127 gives 255"},
    trait_description{"nearest",
                      "to the nearest power of two, halfway up; 0 and negative numbers give 255"},
    trait_description{"none", "not offered"},
};

template <typename Trait>
trait_description description_of(Trait k) {
    return words<Trait>.at(static_cast<std::size_t>(k));
}

trait_description description_of_range(bool low_byte) {
    return low_byte ? trait_description{"low byte",
                                        "the low byte of the code, an undefined cast in C as seen "
                                        "on x86"}
                    : trait_description{"clamped",
                                        "code 0 below 2^-127, NaN or the largest scale above"};
}

trait_description description_of_bits(int bits) {
    switch (bits) {
        case 0:
            return {"23 - m", "23 - m, m the mantissa bits of the element format"};
        case 8:
            return {"8", "8"};
        case 32:
            return {"32", "32"};
        default:
            return {"other", "another width"};
    }
}

trait_description description_of_e4m3_max(bool reaches_480) {
    return reaches_480 ? trait_description{"480", "480: the NaN code is a number"}
                       : trait_description{"448", "448"};
}

trait_description description_of_e4m3_overflow(const dialect& d) {
    if (d.e4m3_overflow_is_nan.value) {
        return {"NaN", "NaN (0x7f), although the conversion saturates"};
    }
    if (saturates(d)) return {"max", "the largest value"};
    return {"special", "NaN, and Inf in E5M2; the largest value if asked to saturate"};
}

constexpr dialect_answer lacks(std::string_view what) {
    return {{what, "the question does not apply"}, evidence::source, false};
}

bool has_any(const dialect& d, std::string_view rules) {
    while (!rules.empty()) {
        const std::string_view rule = first_of(rules);
        if (lists(d.rules, rule)) return true;
        rules.remove_prefix(std::min(rules.size(), rule.size() + 1));
    }
    return false;
}

template <auto Member>
dialect_answer answer_of(const dialect& d) {
    const auto& known = d.*Member;
    return {description_of(known.value), known.mark, true};
}

// Properties of blocks only.
template <auto Member>
dialect_answer of_blocks(const dialect& d) {
    return d.blocks ? answer_of<Member>(d) : lacks("no blocks");
}

// Properties of blocks with E8M0 scales only.
constexpr std::string_view e8m0_rules =
    "floor ceil even rceil nearest enhanced ceil-div-max floor-bump stochastic";

template <auto Member>
dialect_answer of_powers(const dialect& d) {
    if (d.blocks && !has_any(d, e8m0_rules)) return lacks("no E8M0");
    return of_blocks<Member>(d);
}

dialect_answer log2_answer(const dialect& d) {
    if (!d.blocks) return lacks("no blocks");
    return has_any(d, "floor ceil nearest enhanced ceil-div-max floor-bump")
               ? answer_of<&dialect::log2>(d)
               : lacks("no log2");
}

dialect_answer emax_answer(const dialect& d) {
    if (!d.blocks) return lacks("no blocks");
    return has_any(d, "floor ceil even nearest floor-bump stochastic")
               ? answer_of<&dialect::emax>(d)
               : lacks("no emax");
}

dialect_answer even_answer(const dialect& d) {
    if (!d.blocks) return lacks("no blocks");
    return has_any(d, "even") ? answer_of<&dialect::even>(d) : lacks("no even");
}

dialect_answer rceil_answer(const dialect& d) {
    if (!d.blocks) return lacks("no blocks");
    return has_any(d, "rceil") ? answer_of<&dialect::rceil>(d) : lacks("no rceil");
}

dialect_answer integer_answer(const dialect& d) {
    const bool integers = d.elements.empty() || lists(d.elements, "int8");
    return integers ? answer_of<&dialect::integers>(d) : lacks("no integers");
}

bool has_e4m3(const dialect& d) { return d.elements.empty() || lists(d.elements, "e4m3"); }

dialect_answer range_answer(const dialect& d) {
    if (!d.blocks) return lacks("no blocks");
    if (!has_any(d, e8m0_rules)) return lacks("no E8M0");
    return {description_of_range(d.low_byte_of_code.value), d.low_byte_of_code.mark, true};
}

dialect_answer bits_answer(const dialect& d) {
    if (d.stochastic.value == stochastic_kind::none) return lacks("none");
    return {description_of_bits(d.random_bits.value), d.random_bits.mark, true};
}

dialect_answer e4m3_max_answer(const dialect& d) {
    if (!has_e4m3(d)) return lacks("no e4m3");
    return {description_of_e4m3_max(d.e4m3_reaches_480.value), d.e4m3_reaches_480.mark, true};
}

dialect_answer e4m3_overflow_answer(const dialect& d) {
    if (!has_e4m3(d)) return lacks("no e4m3");
    return {description_of_e4m3_overflow(d), d.e4m3_overflow_is_nan.mark, true};
}

constexpr std::array columns{
    dialect_column{"log2", "log2", "How is the log2 of amax computed?", log2_answer},
    dialect_column{"even", "scale=even", "What does scale=even round, and where do ties go?",
                   even_answer},
    dialect_column{"emax", "minus", "What is subtracted from the exponent of amax?", emax_answer},
    dialect_column{"rceil", "scale=rceil", "How is ceil(log2(amax / max)) computed?", rceil_answer},
    dialect_column{"inf_amax", "Inf in\na block", "What is the scale of a block with an Inf?",
                   of_powers<&dialect::inf>},
    dialect_column{"nan_amax", "NaN in\na block", "What does a NaN in a block do to its scale?",
                   of_powers<&dialect::nan>},
    dialect_column{"zero_block", "zero\nblock", "What is the scale of a block of zeros?",
                   of_powers<&dialect::zero>},
    dialect_column{"scale_storage", "scale is", "How is the scale stored?",
                   of_powers<&dialect::storage>},
    dialect_column{"scale_range", "beyond\nE8M0",
                   "What happens to an exponent outside the range "
                   "of E8M0?",
                   range_answer},
    dialect_column{"code_0", "at\ncode 0", "By what are elements divided if the scale code is 0?",
                   of_blocks<&dialect::at_code_0>},
    dialect_column{"two_level", "NVFP4", "Which convention of two-level scaling is followed?",
                   of_blocks<&dialect::two_level>},
    dialect_column{"arithmetic", "element", "How is an element computed?",
                   answer_of<&dialect::arithmetic>},
    dialect_column{"sign_of_zero", "-0", "What is the sign of a zero result?",
                   answer_of<&dialect::sign_of_zero>},
    dialect_column{"inf_value", "Inf value",
                   "What does an Inf become, unless the scale determines it?",
                   answer_of<&dialect::inf_value>},
    dialect_column{"nan_value", "NaN value",
                   "What does a NaN become, unless the scale determines it?",
                   answer_of<&dialect::nan_value>},
    dialect_column{"stochastic", "stochastic", "How does stochastic rounding use its random bits?",
                   answer_of<&dialect::stochastic>},
    dialect_column{"random_bits", "bits", "How many random bits does an element take by default?",
                   bits_answer},
    dialect_column{"integers", "integers", "Is the most negative integer used?", integer_answer},
    dialect_column{"e4m3_max", "E4M3 max", "What is the largest E4M3 value?", e4m3_max_answer},
    dialect_column{"e4m3_overflow", "E4M3 over",
                   "What does a finite value beyond the largest E4M3 become?",
                   e4m3_overflow_answer},
    dialect_column{"e8m0", "to E8M0", "How is a float32 converted to E8M0?",
                   answer_of<&dialect::e8m0>},
};

constexpr std::array marks{evidence::run, evidence::transcribed, evidence::source,
                           evidence::documents, evidence::choice};

}  // namespace

bool saturates(const dialect& d) { return d.inf_value.value != inf_element::special; }

std::span<const dialect_column> dialect_columns() { return columns; }

const dialect_column* find_dialect_column(std::string_view name) {
    for (const dialect_column& c : columns) {
        if (c.name == name) return &c;
    }
    return nullptr;
}

trait_description description_of(evidence mark) {
    switch (mark) {
        case evidence::run:
            return {"R", "seen by running the implementation; vectors of it are in the tests"};
        case evidence::transcribed:
            return {"T", "its logic was transcribed into a program, which was run"};
        case evidence::source:
            return {"S", "read in its source"};
        case evidence::documents:
            return {"D", "from a specification, a paper or documentation"};
        case evidence::choice:
            return {"C", "undefined there; our choice"};
    }
    return {};
}

std::span<const evidence> evidence_marks() { return marks; }

}  // namespace mx::codec
