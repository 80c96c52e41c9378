// SPDX-License-Identifier: Apache-2.0
// Made-up results of an analysis, for tests of what mx compare makes of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "libmx/report/record_list.hpp"

namespace mx::tests {

/// One result. The tensor has 64 elements and an rms of 1, so that nrmse is rmse.
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

inline void add(report::record_list& to, const result& r) {
    const auto maybe = [](const auto& x) { return x ? report::value(*x) : report::value(); };
    const bool error = r.rmse && *r.rmse > 0;
    report::record one{{"file", std::string("f")},
                       {"tensor", r.tensor},
                       {"role", r.role},
                       {"layer", maybe(r.layer)},
                       {"recipe", r.recipe}};
    if (r.phase) one.emplace_back("phase", *r.phase);
    one.emplace_back("elements", r.elements);
    one.emplace_back("rmse", maybe(r.rmse));
    one.emplace_back("nrmse", maybe(r.rmse));
    one.emplace_back("sqnr_db", error ? report::value(-20 * std::log10(*r.rmse)) : report::value());
    one.emplace_back("rms", 1.0);
    one.emplace_back("clamp_rate", r.clamp_rate);
    one.emplace_back("bits_per_element", r.bits);
    to.push_back(one);
}

}  // namespace mx::tests
