// SPDX-License-Identifier: Apache-2.0
// THE LIST of dialects: whose exact behaviour a recipe follows (`dialect=`).
//
// A row states each behaviour with the evidence for it. What a dialect cannot do is not in its
// lists of rules, roundings and elements; the first rule and the first rounding are its defaults.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "libmx/codec/dialect_traits.hpp"

namespace mx::codec {

/// A behaviour and how well it is known.
template <typename T>
struct known {
    T value;
    evidence mark;
};

enum class dialect_id : std::uint8_t {
    ocp,
    microxcaling,
    microxcaling_bf16,
    microxcaling_native,
    torchao,
    te,
    nvidia,
    fbgemm,
    ggml,
    modelopt,
    quark,
    compressed_tensors,
    tetrajet,
    amd_hip,
    systems_scaling,
    gfloat,
    ml_dtypes,
    cutlass,
};

struct dialect {
    dialect_id id;
    std::string_view name;
    std::string_view summary;
    std::string_view source;       ///< owner/name@commit, or the document
    std::string_view verified_by;  ///< what was run against vectors, and what was only read
    bool blocks;                   ///< false: conversions of single values only
    std::string_view rules;        ///< scale rules it has, separated by spaces, default first
    std::string_view roundings;    ///< element roundings it has, default first
    std::string_view elements;     ///< element formats it has; empty: all
    std::string_view two_level_roundings{};  ///< with ue4m3 scales, where they differ

    known<log2_kind> log2;
    known<even_kind> even;
    known<emax_kind> emax;
    known<rceil_kind> rceil;
    known<inf_amax> inf;
    known<nan_amax> nan;
    known<zero_block> zero;
    known<scale_storage> storage;
    known<element_kind> arithmetic;
    known<zero_sign> sign_of_zero;
    known<inf_element> inf_value;
    known<nan_element> nan_value;
    known<stochastic_kind> stochastic;
    known<int_range> integers;
    known<two_level_kind> two_level;
    known<e8m0_cast> e8m0;
    /// The largest E4M3 value: 448 (0x7E), or 480 when the NaN code is a number.
    known<bool> e4m3_reaches_480;
    /// A finite value beyond the largest one becomes NaN in E4M3 even when saturating.
    known<bool> e4m3_overflow_is_nan;
    /// A scale code out of range keeps its low byte (a cast undefined in C, as seen on x86).
    known<bool> low_byte_of_code;
    /// Random bits of stochastic rounding unless the recipe says otherwise; 0: 23 - m.
    known<int> random_bits;
};

/// Every dialect, ocp first.
std::span<const dialect> dialects();

/// The row of `id`.
const dialect& row_of(dialect_id id);

/// The row named `name`, or nullptr.
const dialect* find_dialect(std::string_view name);

/// Whether `word` is one of the words of `list` (separated by spaces).
bool lists(std::string_view list, std::string_view word);

/// The first word of `list`.
std::string_view first_of(std::string_view list);

}  // namespace mx::codec
