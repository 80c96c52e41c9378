// SPDX-License-Identifier: Apache-2.0
// The recipes that a policy offers for a role on a target, with the scores of a task.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "libmx/policy/policy.hpp"
#include "libmx/policy/scores.hpp"
#include "libmx/policy/targets.hpp"

namespace mx::policy {

/// A candidate of a role as available on the target.
struct offer {
    std::string key;  ///< recipe_key of the recipe
    codec::recipe recipe;
    verdict at_best = verdict::evaluate;
    std::string scored;  ///< what the scores of a task say; else empty
    bool safe() const { return at_best == verdict::safe; }
};

/// The recipe as the target's own software makes it; rotated and stochastically rounded ones stay
/// as they are.
codec::recipe on_target(const codec::recipe& r, const supported_format& f);

/// The candidates of a role in the policy's order, without those that are always no, that the
/// target lacks, or that it emulates although the policy requires native ones. A recipe with scores
/// of a task is safe if none of them is worse than the policy allows, else no.
std::vector<offer> offers_of(const policy& by, std::string_view role, const target& on,
                             std::span<const score> scores);

/// What inference uses today, to compare recipes with: bf16, FP8 with a scale per tensor, INT8 with
/// one per output channel.
std::vector<codec::recipe> baselines();

/// Takes the baselines out of the recipes of a run that measured all of them and others: it is the
/// others that it is about.
void leave_out_baselines(std::vector<codec::recipe>& recipes);

}  // namespace mx::policy
