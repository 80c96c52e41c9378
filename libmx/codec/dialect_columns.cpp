// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/dialect_columns.hpp"

#include <algorithm>
#include <array>

namespace mx::codec {
namespace {

trait_words words_of(log2_kind k) {
    switch (k) {
        case log2_kind::exact:
            return {"exact", "from the exponent bits, never wrong"};
        case log2_kind::float32:
            return {"float32", "a rounded float32 log2, off by one next to some powers of two"};
        case log2_kind::bfloat16:
            return {"bfloat16", "a log2 rounded to bfloat16, off by one below powers of two"};
    }
    return {};
}

trait_words words_of(even_kind k) {
    switch (k) {
        case even_kind::element:
            return {"tie up",
                    "amax to the element's precision, ties up; reaching 2^128 gives NaN (255)"};
        case even_kind::element_capped:
            return {"tie up, capped",
                    "amax to the element's precision, ties up; reaching 2^128 gives 2^127"};
        case even_kind::fbgemm:
            return {"tie down",
                    "half an ulp of the element less one bit is added to amax, so ties go toward "
                    "the smaller scale; beyond Inf gives code 0 and elements of a NaN"};
        case even_kind::one_bit:
            return {"one bit", "amax to one mantissa bit for every element format: up from 1.75"};
    }
    return {};
}

trait_words words_of(emax_kind k) {
    switch (k) {
        case emax_kind::format:
            return {"emax", "the exponent of the format's largest value"};
        case emax_kind::exponent_bits:
            return {"bits", "the number of its exponent bits (E3M0: 3 where emax is 4)"};
    }
    return {};
}

trait_words words_of(rceil_kind k) {
    switch (k) {
        case rceil_kind::exact:
            return {"exact", "by comparing mantissas"};
        case rceil_kind::reciprocal:
            return {"times 1/max", "float32 amax * (1/max), then the exponent rounded up"};
        case rceil_kind::quotient:
            return {"over max", "float32 amax / max, then the exponent rounded up"};
        case rceil_kind::log2:
            return {"log2", "ceil of the float32 log2 of float32 amax / max"};
    }
    return {};
}

trait_words words_of(inf_amax k) {
    switch (k) {
        case inf_amax::nan:
            return {"255", "code 255: the block is NaN"};
        case inf_amax::saturate:
            return {"254", "code 254, the largest scale"};
        case inf_amax::clamp_252:
            return {"252", "code 252, 2^125"};
        case inf_amax::keep:
            return {"Inf", "the scale is Inf"};
        case inf_amax::zero:
            return {"0", "code 0, and every element is that of a NaN"};
        case inf_amax::finite_max:
            return {"FLT_MAX", "as if amax were the largest float32"};
    }
    return {};
}

trait_words words_of(nan_amax k) {
    switch (k) {
        case nan_amax::nan:
            return {"255", "code 255: the block is NaN"};
        case nan_amax::ignored:
            return {"ignored", "none: the scale is that of the other elements"};
        case nan_amax::zero:
            return {"0", "code 0"};
    }
    return {};
}

trait_words words_of(zero_block k) {
    switch (k) {
        case zero_block::code_0:
            return {"0", "code 0, 2^-127"};
        case zero_block::tiny_amax:
            return {"of 2^-126", "as if amax were 2^-126: code 1 where emax is 0, else code 0"};
        case zero_block::f32_epsilon:
            return {"2^-23", "2^-23 where the scale comes out as zero (under even: 2^-127)"};
        case zero_block::as_1e_8:
            return {"of 1e-8", "as if amax were 1e-8"};
    }
    return {};
}

trait_words words_of(scale_storage k) {
    switch (k) {
        case scale_storage::code:
            return {"E8M0", "an E8M0 byte"};
        case scale_storage::float32:
            return {"float32", "a float32, which the range of E8M0 does not bound"};
    }
    return {};
}

trait_words words_of(element_kind k) {
    switch (k) {
        case element_kind::exact:
            return {"exact", "the exact quotient, rounded once"};
        case element_kind::microxcaling:
            return {"float32",
                    "float32 arithmetic: |y| * 2^-e + 1/2 is rounded before it is truncated, e "
                    "comes from a float32 log2"};
        case element_kind::bfloat16:
            return {"bfloat16", "bfloat16 arithmetic throughout"};
        case element_kind::fraction_even:
            return {"fraction",
                    "the fraction above the leading power of two to nearest even (E3M0: ties "
                    "down)"};
        case element_kind::fbgemm:
            return {"shifts",
                    "shifts of integers in narrow types: half away; E3M0 loses its smallest "
                    "binade, and a few values below 2^-10 become 0.5 or 2"};
    }
    return {};
}

trait_words words_of(zero_sign k) {
    switch (k) {
        case zero_sign::kept:
            return {"kept", "the sign of the input"};
        case zero_sign::plus:
            return {"+0", "always +0"};
        case zero_sign::input_minus:
            return {"-0", "a zero of either sign becomes -0; underflow keeps the sign"};
        case zero_sign::input_plus:
            return {"+0, mixed", "a zero becomes +0; a number that underflows keeps its sign"};
    }
    return {};
}

trait_words words_of(inf_element k) {
    switch (k) {
        case inf_element::saturate:
            return {"max", "the largest value of its sign"};
        case inf_element::special:
            return {"special", "NaN (E4M3) or Inf (E5M2), the largest value of formats without"};
        case inf_element::keep:
            return {"Inf", "stays Inf, which has no code"};
    }
    return {};
}

trait_words words_of(nan_element k) {
    switch (k) {
        case nan_element::nan_or_max:
            return {"NaN, +max", "positive NaN; +max in formats without NaN"};
        case nan_element::nan_or_zero:
            return {"NaN, -+0", "NaN; in formats without, a zero of the opposite sign"};
        case nan_element::nan_or_inner:
            return {"NaN, 1.5", "NaN; in formats without, what the payload leaves (1.5 often)"};
        case nan_element::keep:
            return {"NaN", "stays NaN, which FP6, FP4 and integers have no code for"};
        case nan_element::zero:
            return {"0", "a zero, of the sign that a zero input gets"};
    }
    return {};
}

trait_words words_of(stochastic_kind k) {
    switch (k) {
        case stochastic_kind::canonical:
            return {"k bits", "up iff floor(delta * 2^k) + r >= 2^k"};
        case stochastic_kind::rounded_delta:
            return {"rounded", "the same after delta was rounded to k bits"};
        case stochastic_kind::add_then_round:
            return {"biased",
                    "23 - m random bits are added and the sum is still rounded to nearest: half "
                    "an ulp too large on average"};
        case stochastic_kind::none:
            return {"none", "not offered"};
    }
    return {};
}

trait_words words_of(int_range k) {
    switch (k) {
        case int_range::ocp:
            return {"int8 full", "int8 uses -2^(n-1), other integers do not"};
        case int_range::symmetric:
            return {"symmetric", "-2^(n-1) is never produced"};
    }
    return {};
}

trait_words words_of(two_level_kind k) {
    switch (k) {
        case two_level_kind::exact:
            return {"exact", "exact quotients, each rounded once"};
        case two_level_kind::torchao:
            return {"min 2^-6", "block scales of at least 2^-6, the smallest normal E4M3"};
        case two_level_kind::te:
            return {"te", "the tensor scale is kept as its reciprocal; E4M3 subnormals are used"};
        case two_level_kind::ggml:
            return {"ggml", "no tensor scale; half-away block scales that jump to 448 from 248"};
        case two_level_kind::modelopt:
            return {"0 is 1", "a block scale of zero becomes 1"};
        case two_level_kind::compressed_tensors:
            return {"2688/amax", "the tensor scale is stored as 2688 / amax"};
        case two_level_kind::none:
            return {"none", "not offered"};
    }
    return {};
}

trait_words words_of(e8m0_cast k) {
    switch (k) {
        case e8m0_cast::up:
            return {"up", "up to a power of two; beyond 2^127, Inf included, 254"};
        case e8m0_cast::up_inf_nan:
            return {"up, Inf 255", "up to a power of two; finite beyond 2^127 254, Inf 255"};
        case e8m0_cast::up_nan:
            return {"up, else 255", "up to a power of two; beyond 2^127 gives 255"};
        case e8m0_cast::nearest:
            return {"nearest",
                    "to the nearest power of two, halfway up; 0 and negative numbers give 255"};
        case e8m0_cast::none:
            return {"none", "not offered"};
    }
    return {};
}

trait_words words_of_range(bool low_byte) {
    return low_byte ? trait_words{"low byte",
                                  "the low byte of the code, an undefined cast in C as seen on x86"}
                    : trait_words{"clamped", "code 0 below 2^-127, NaN or the largest scale above"};
}

trait_words words_of_bits(int bits) {
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

trait_words words_of_e4m3_max(bool reaches_480) {
    return reaches_480 ? trait_words{"480", "480: the NaN code is a number"}
                       : trait_words{"448", "448"};
}

trait_words words_of_e4m3_overflow(bool is_nan) {
    return is_nan ? trait_words{"NaN", "NaN (0x7f), although the conversion saturates"}
                  : trait_words{"max", "the largest value"};
}

constexpr dialect_answer lacks(std::string_view what) {
    return {{what, "it has nothing the question is about"}, evidence::source, false};
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
dialect_answer say(const dialect& d) {
    const auto& known = d.*Member;
    return {words_of(known.value), known.mark, true};
}

// What only blocks have.
template <auto Member>
dialect_answer of_blocks(const dialect& d) {
    return d.blocks ? say<Member>(d) : lacks("no blocks");
}

dialect_answer log2_answer(const dialect& d) {
    if (!d.blocks) return lacks("no blocks");
    return has_any(d, "floor ceil nearest enhanced ceil-div-max floor-bump")
               ? say<&dialect::log2>(d)
               : lacks("no log2");
}

dialect_answer emax_answer(const dialect& d) {
    if (!d.blocks) return lacks("no blocks");
    return has_any(d, "floor ceil even nearest floor-bump stochastic") ? say<&dialect::emax>(d)
                                                                       : lacks("no emax");
}

dialect_answer even_answer(const dialect& d) {
    if (!d.blocks) return lacks("no blocks");
    return has_any(d, "even") ? say<&dialect::even>(d) : lacks("no even");
}

dialect_answer rceil_answer(const dialect& d) {
    if (!d.blocks) return lacks("no blocks");
    return has_any(d, "rceil") ? say<&dialect::rceil>(d) : lacks("no rceil");
}

dialect_answer integer_answer(const dialect& d) {
    const bool integers = d.elements.empty() || lists(d.elements, "int8");
    return integers ? say<&dialect::integers>(d) : lacks("no integers");
}

bool has_e4m3(const dialect& d) { return d.elements.empty() || lists(d.elements, "e4m3"); }

dialect_answer range_answer(const dialect& d) {
    if (!d.blocks) return lacks("no blocks");
    return {words_of_range(d.low_byte_of_code.value), d.low_byte_of_code.mark, true};
}

dialect_answer bits_answer(const dialect& d) {
    if (d.stochastic.value == stochastic_kind::none) return lacks("none");
    return {words_of_bits(d.random_bits.value), d.random_bits.mark, true};
}

dialect_answer e4m3_max_answer(const dialect& d) {
    if (!has_e4m3(d)) return lacks("no e4m3");
    return {words_of_e4m3_max(d.e4m3_reaches_480.value), d.e4m3_reaches_480.mark, true};
}

dialect_answer e4m3_overflow_answer(const dialect& d) {
    if (!has_e4m3(d)) return lacks("no e4m3");
    return {words_of_e4m3_overflow(d.e4m3_overflow_is_nan.value), d.e4m3_overflow_is_nan.mark,
            true};
}

constexpr std::array columns{
    dialect_column{"log2", "log2", "How is the log2 of amax found?", log2_answer},
    dialect_column{"even", "scale=even", "What does scale=even round, and where do ties go?",
                   even_answer},
    dialect_column{"emax", "minus", "What is subtracted from the exponent of amax?", emax_answer},
    dialect_column{"rceil", "scale=rceil", "How is ceil(log2(amax / max)) found?", rceil_answer},
    dialect_column{"inf_amax", "Inf in\na block", "What is the scale of a block that holds an Inf?",
                   of_blocks<&dialect::inf>},
    dialect_column{"nan_amax", "NaN in\na block", "What does a NaN in a block do to its scale?",
                   of_blocks<&dialect::nan>},
    dialect_column{"zero_block", "zero\nblock", "What is the scale of a block of zeros?",
                   of_blocks<&dialect::zero>},
    dialect_column{"scale_storage", "scale is", "What holds the scale?",
                   of_blocks<&dialect::storage>},
    dialect_column{"scale_range", "beyond\nE8M0", "What becomes of an exponent that E8M0 lacks?",
                   range_answer},
    dialect_column{"two_level", "NVFP4", "Which convention of two-level scaling is followed?",
                   of_blocks<&dialect::two_level>},
    dialect_column{"arithmetic", "element", "How is an element found?", say<&dialect::arithmetic>},
    dialect_column{"sign_of_zero", "-0", "What is the sign of a zero result?",
                   say<&dialect::sign_of_zero>},
    dialect_column{"inf_value", "Inf value",
                   "What does an Inf become where the scale does not decide?",
                   say<&dialect::inf_value>},
    dialect_column{"nan_value", "NaN value",
                   "What does a NaN become where the scale does not decide?",
                   say<&dialect::nan_value>},
    dialect_column{"stochastic", "stochastic", "How does stochastic rounding use its random bits?",
                   say<&dialect::stochastic>},
    dialect_column{"random_bits", "bits", "How many random bits does an element take by default?",
                   bits_answer},
    dialect_column{"integers", "integers", "Is the most negative integer used?", integer_answer},
    dialect_column{"e4m3_max", "E4M3 max", "What is the largest E4M3 value?", e4m3_max_answer},
    dialect_column{"e4m3_overflow", "E4M3 over",
                   "What does a finite value beyond the largest E4M3 become when saturating?",
                   e4m3_overflow_answer},
    dialect_column{"e8m0", "to E8M0", "How is a float32 converted to E8M0?", say<&dialect::e8m0>},
};

constexpr std::array marks{evidence::run, evidence::transcribed, evidence::source,
                           evidence::documents, evidence::choice};

}  // namespace

std::span<const dialect_column> dialect_columns() { return columns; }

const dialect_column* find_dialect_column(std::string_view name) {
    for (const dialect_column& c : columns) {
        if (c.name == name) return &c;
    }
    return nullptr;
}

trait_words words_of(evidence mark) {
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
            return {"C", "undefined there: what was chosen here"};
    }
    return {};
}

std::span<const evidence> evidence_marks() { return marks; }

}  // namespace mx::codec
