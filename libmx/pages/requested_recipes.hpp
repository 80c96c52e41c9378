// SPDX-License-Identifier: Apache-2.0
// The recipes that a user asked for, where the policy recommends none of them: each over all
// operands, against normal data, with the tensors that it suits least and best.
#pragma once

#include <string>
#include <vector>

#include "libmx/policy/judged_model.hpp"
#include "libmx/report/document.hpp"

namespace mx::pages {

/// A measured recipe over the operands of products, each divided by its RMS.
struct requested_recipe {
    std::string recipe;
    std::size_t tensors = 0;
    std::uint64_t elements = 0, stored = 0, bytes = 0;
    double sqnr_db = 0, normal_db = 0;       ///< infinite where nothing is lost
    std::size_t worst = 0, best = 0;         ///< tensors, by error relative to normal data
    double worst_ratio = 0, best_ratio = 0;  ///< policy::error_over_normal

    double bits() const { return 8 * static_cast<double>(bytes) / static_cast<double>(elements); }
};

/// In the order in which they were measured. Whether there are any: none where no class of the
/// model is undecided, or a recipe is recommended for one.
std::vector<requested_recipe> requested_recipes(const policy::judged_model& m);

/// A sentence for each of the first recipes.
report::notes requested_sentences(const policy::judged_model& m,
                                  const std::vector<requested_recipe>& requested);

/// All of them as a table.
report::section requested_table(const policy::judged_model& m,
                                const std::vector<requested_recipe>& requested);

}  // namespace mx::pages
