// SPDX-License-Identifier: Apache-2.0
// Converts a library recipe to the oracle's types, for `mx analyze --exact` and the tests. By name
// where both have lists of their own.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "libmx/codec/recipe.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/oracle/dialects.hpp"

namespace mx::app {

inline std::optional<oracle::scale_rule> oracle_rule(const scale::scale_rule& rule) {
    // Has the same name as the rule of power-of-two scales.
    if (rule.id == scale::rule_id::search_two_level) return oracle::scale_rule::search_two_level;
    for (const auto& [name, id] : oracle::scale_rule_names) {
        if (name == rule.name) return id;
    }
    return std::nullopt;
}

inline oracle::integer_emax oracle_emax(scale::int_emax choice) {
    switch (choice) {
        case scale::int_emax::zero:
            return oracle::integer_emax::zero;
        case scale::int_emax::log2max:
            return oracle::integer_emax::log2max;
        case scale::int_emax::one:
            return oracle::integer_emax::one;
    }
    return oracle::integer_emax::zero;
}

inline oracle::selection oracle_selection(codec::four_over_six select) {
    switch (select) {
        case codec::four_over_six::none:
            return oracle::selection::none;
        case codec::four_over_six::mse:
            return oracle::selection::mse;
        case codec::four_over_six::mae:
            return oracle::selection::mae;
        case codec::four_over_six::abs_max:
            return oracle::selection::abs_max;
    }
    return oracle::selection::none;
}

/// `r` for the oracle, in a tensor whose largest finite magnitude is `tensor_amax` (used if
/// codec::needs_tensor_facts). Throws std::bad_optional_access for a scale rule or a dialect that
/// the oracle lacks.
inline oracle::recipe oracle_recipe(const codec::recipe& r, float tensor_amax = 0) {
    oracle::recipe o;
    o.by = oracle::find_dialect(r.by->name);
    if (o.by == nullptr) throw std::bad_optional_access();
    o.flush_subnormals = r.flush_subnormals;
    o.select = oracle_selection(r.select);
    o.full_bound = r.bound == codec::scale_bound::largest;
    o.fp16_candidates = r.candidates == codec::candidate_kind::fp16;
    o.scale_format = r.scale_format;
    using outer = codec::outer_choice::kind;
    constexpr auto whole = std::numeric_limits<std::uint64_t>::max();
    if (r.outer.what == outer::row) o.outer_rows = 1, o.outer_cols = whole;
    if (r.outer.what == outer::column) o.outer_rows = whole, o.outer_cols = 1;
    if (r.outer.what == outer::tile) {
        o.outer_rows = static_cast<std::uint64_t>(r.outer.rows);
        o.outer_cols = static_cast<std::uint64_t>(r.outer.cols);
    }
    if (r.outer.what == outer::given) o.given = r.outer.value;
    o.search =
        r.measure == codec::search_measure::mse ? oracle::selection::mse : oracle::selection::mae;
    o.reach = r.reach == codec::all_codes ? -1 : r.reach;
    o.tensor_amax = tensor_amax;
    o.element = r.element;
    o.rule = oracle_rule(*r.rule).value();
    o.emax = oracle_emax(r.emax);
    o.round = {r.round, r.ties, r.random_bits};
    o.full_range = r.minimum == codec::int_min::full;
    o.has_offset = r.offset == codec::offset_kind::fp16;
    o.range =
        r.range == codec::range_kind::half ? oracle::offset_range::half : oracle::offset_range::max;
    o.seed = r.seed;
    o.block_rows = static_cast<std::uint64_t>(r.block.rows);
    o.block_cols = static_cast<std::uint64_t>(r.block.cols);
    return o;
}

}  // namespace mx::app
