// SPDX-License-Identifier: Apache-2.0
// Mixed precision: one recipe per tensor, with the least total squared error within a budget of
// bits, or the fewest bits above a minimum SQNR.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/report/declared.hpp"
#include "libmx/report/record.hpp"
#include "libmx/studies/plan/candidates.hpp"
#include "libmx/studies/plan/knapsack.hpp"

namespace mx::plan {

/// At most one of the two is set. Without either, every tensor has one choice, the one that a
/// policy recommends.
struct plan_goal {
    std::optional<double> bits;     ///< budget: bits per element, over all planned elements
    std::optional<double> sqnr_db;  ///< floor: SQNR of all planned elements together
};

struct plan_totals {
    std::uint64_t bits = 0;
    double error = 0;                 ///< sum of squared errors
    std::optional<double> sqnr_db{};  ///< none without an error or a signal
};

/// One recipe for all tensors.
struct uniform_plan {
    std::uint32_t recipe = 0;
    plan_totals totals;
    bool within = false;  ///< within the budget, or above the floor
};

struct plan {
    std::vector<std::uint32_t> chosen;  ///< by tensor: index into its options
    plan_totals totals;
    bool optimal = false;
    /// A lower bound: on the squared error under a budget, on the bits above a minimum SQNR. Equal
    /// to the plan's own value if it is optimal.
    double bound = 0;
    // Both are empty without a goal.
    std::vector<plan_totals> curve;           ///< lower convex hull: fewest bits to least error
    std::vector<uniform_plan> uniform;        ///< the recipes that every tensor has
    std::optional<std::size_t> best_uniform;  ///< index into uniform, of those within
};

/// Computes a plan. Errors are compared in units of 2^-60 of the largest possible total, rounded
/// up. `states` bounds the memory of the search (see solve_knapsack). Throws base::error (usage) if
/// the goal cannot be reached, with the best value that can.
plan make_plan(const candidates& from, const plan_goal& goal, std::size_t states = knapsack_states);

/// A plan in the words of other tools: {"not_mapped", "torchao", "compressed_tensors", "modelopt",
/// "llama_cpp"}: per recipe the arguments that give it there, or null and the reason, and the
/// recipe of each module, or of each tensor by its name in GGUF. Modules are the matrices named
/// MODULE.weight with the role weight or head; other tensors are not mapped. Inputs of layers are,
/// where plans by divergence quantize them and the tool has words for it.
report::record mapping_of(const candidates& from, const plan& p);
/// Defines the record "mapping" and its parts.
void define_mapping(report::document_schema& to);

/// The tools that a plan can be exported to.
const std::vector<std::string_view>& export_tools();

struct export_text {
    std::string text;                  ///< JSON, or arguments of llama-quantize, one in a line
    std::vector<std::string> remarks;  ///< what the tool computes otherwise, or is not told
};
/// What one of them reads. Throws base::error (usage) that names the first tensor whose recipe it
/// does not have.
export_text exported(const candidates& from, const plan& p, std::string_view tool);

}  // namespace mx::plan
