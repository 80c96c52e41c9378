// SPDX-License-Identifier: Apache-2.0
// Metrics of a task on which a model was evaluated, per recipe: the file of `--eval`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/report/json_reader.hpp"

namespace mx::policy {

/// A metric of the model with its operands in `recipe`.
struct score {
    codec::recipe recipe;
    std::string metric;  ///< "perplexity"
    double value = 0;
    double baseline = 0;  ///< the same metric in the stored precision
    bool higher_is_better = false;
    std::optional<double> error = {};  ///< standard error of value / baseline - 1

    /// How much worse than the baseline, relative to it; negative: better.
    double loss() const;
    /// "perplexity 5.55 to 5.58 (0.54 % worse)"; "(0.54 % worse, standard error 0.31 %)".
    std::string text() const;
};

/// Reads {"schema": "mx.scores/1", "results": [{"recipe", "metric", "value", "better"}, ...]}, in
/// which `better` is "lower" or "higher" and the recipe "stored" is the baseline of its metric,
/// which every metric needs. "stderr" may be the standard error of the value over the baseline.
/// Throws base::error (input) with `path`.
std::vector<score> parse_scores(const report::results_file& file, const std::string& path);
std::vector<score> parse_scores(std::string_view text, const std::string& path);

}  // namespace mx::policy
