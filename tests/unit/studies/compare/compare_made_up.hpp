// SPDX-License-Identifier: Apache-2.0
// Made-up results of an analysis, for tests of mx compare.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "libmx/analysis/result.hpp"

namespace mx::tests {

/// One result. The tensor has 64 elements and rms 1, so nrmse equals rmse.
struct result {
    std::string tensor, recipe;
    std::optional<double> rmse;
    double bits = 4.25;
    std::string role = "weight";
    std::optional<std::int64_t> layer = {};
    std::optional<std::int64_t> phase = {};
    std::int64_t elements = 64;
    double clamp_rate = 0;
};

inline void add(analysis::result_list& to, const result& r) {
    analysis::result one;
    one.of = std::make_shared<analysis::tensor_identity>(
        analysis::tensor_identity{"f", r.tensor, "F32", r.role, {64}, r.layer});
    one.under = std::make_shared<analysis::named_recipe>(
        analysis::named_recipe{r.recipe, codec::parse_recipe(r.recipe)});
    one.phase = r.phase;
    one.elements = static_cast<std::uint64_t>(r.elements);
    if (r.rmse) one.rmse = one.nrmse = *r.rmse;
    if (r.rmse && *r.rmse > 0) one.sqnr_db = -20 * std::log10(*r.rmse);
    one.rms = 1;
    one.clamp_rate = r.clamp_rate;
    one.bits_per_element = r.bits;
    to.push_back(one);
}

}  // namespace mx::tests
