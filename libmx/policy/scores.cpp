// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/scores.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "libmx/base/status.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/json_reader.hpp"
#include "libmx/report/members.hpp"

namespace mx::policy {

double score::loss() const {
    const double worse = higher_is_better ? baseline - value : value - baseline;
    return worse / std::abs(baseline);
}

std::string score::text() const {
    return fmt::format(
        "{} {:.6g} to {:.6g} ({} % {}{})", metric, baseline, value,
        report::percent_text(std::abs(loss())), loss() > 0 ? "worse" : "better",
        error ? fmt::format(", standard error {} %", report::percent_text(*error)) : "");
}

std::vector<score> parse_scores(std::string_view text, const std::string& path) {
    return parse_scores(report::read_results(text, path), path);
}

std::vector<score> parse_scores(const report::results_file& file, const std::string& path) {
    std::size_t number = 0;
    const auto fail = [&](const std::string& what) {
        throw base::error(base::error_kind::input, fmt::format("score {} {}", number, what),
                          {path, {}, {}});
    };
    if (file.kind != "scores") {
        throw base::error(
            base::error_kind::input,
            fmt::format("is mx.{}, not scores: give a \"schema\" of mx.scores/1", file.kind),
            {path, {}, {}});
    }
    std::vector<score> scores;
    std::map<std::string, double> baselines;
    for (const report::record& r : file.results) {
        ++number;
        score s;
        s.metric = report::text_of(r, "metric");
        const std::string recipe = report::text_of(r, "recipe");
        const auto value = report::number_of(r, "value");
        if (s.metric.empty() || recipe.empty() || !value) {
            fail("needs a \"recipe\", a \"metric\" and a \"value\"");
        }
        s.value = *value;
        if (recipe == "stored") {
            if (s.value == 0) fail("has a baseline of 0, for which no relative loss exists");
            if (!baselines.emplace(s.metric, s.value).second) fail("repeats a baseline");
            continue;
        }
        const std::string better = report::text_of(r, "better");
        if (better != "lower" && better != "higher")
            fail("needs \"better\": \"lower\" or \"higher\"");
        s.higher_is_better = better == "higher";
        s.error = report::number_of(r, "stderr");
        if (s.error && !(*s.error >= 0)) fail("has a \"stderr\" below zero");
        try {
            s.recipe = codec::parse_recipe(recipe);
        } catch (const base::error& e) {
            fail("has an invalid recipe: " + e.message());
        }
        scores.push_back(std::move(s));
    }
    for (score& s : scores) {
        const auto at = baselines.find(s.metric);
        if (at == baselines.end()) {
            throw base::error(base::error_kind::input,
                              fmt::format("has no baseline of {}: add its value for the recipe "
                                          "\"stored\"",
                                          base::printable(s.metric)),
                              {path, {}, {}});
        }
        s.baseline = at->second;
    }
    return scores;
}

}  // namespace mx::policy
