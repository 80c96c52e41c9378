// SPDX-License-Identifier: Apache-2.0
// A model's tensors with their judgement: used by every command that gives a verdict.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libmx/policy/judge.hpp"

namespace mx::policy {

/// What tensors are judged by: --policy, --target, --eval.
struct basis {
    std::optional<policy> by;  ///< none: default_policy of the tensors
    const target* on = &targets.front();
    std::vector<score> scores;
    std::vector<report::given_option> options;  ///< these, as given
};

/// A measured model and its judgement.
struct judged_model : measured_model {
    policy by;
    const target* on = nullptr;
    judgement says;
    /// What the tensors are of, as named on command lines, in order; the files where tensors of
    /// one argument have the same name.
    std::vector<std::string> files;
    std::vector<report::given_option> options;  ///< basis::options

    /// The one of `files` that a tensor is of.
    const std::string& file_of(std::size_t tensor) const;

    bool by_file = false;  ///< `files` are files
};

judged_model judge_model(measured_model m, const basis& b);

/// Of one run, in memory or read from a file: its results, and the tail of its document, whose
/// member `skipped` lists what the run left out.
judged_model judge_model(const analysis::result_list& results, const report::record& tail,
                         const basis& b);

/// The recipes that a policy judges on a target, each once, in its order: the default recipes of a
/// run. Uses name and role of `tensors`: roles without tensors add no recipe.
std::vector<codec::recipe> recipes_to_measure(const policy& by, const target& on,
                                              std::span<const measured_tensor> tensors);

}  // namespace mx::policy
