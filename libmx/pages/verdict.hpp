// SPDX-License-Identifier: Apache-2.0
// THE VERDICT as people and programs read it: what to ship, what keeps its precision, the cost, the
// risks, how sure that is, and what was not measured. Every output takes it from a judged model.
#pragma once

#include <string>
#include <vector>

#include "libmx/policy/judged_model.hpp"
#include "libmx/report/document.hpp"

namespace mx::pages {

/// What stands beside the judgement.
struct verdict_context {
    std::string repeat;                 ///< the command that makes the page again; may be empty
    std::vector<std::string> warnings;  ///< sentences on the results
};

/// The first screen: the verdict in sentences, a table of classes and recipes, the largest risks,
/// the best recipes of about 4, 6 and 8 bits, and what was not measured. Sections that would be
/// empty are left out.
std::vector<report::section> verdict_sections(const policy::judged_model& m,
                                              const verdict_context& c);

/// The verdict in one line, without a line end: for chat and CI.
std::string verdict_line(const policy::judged_model& m);

/// The tensor as it is called where several files were measured.
std::string tensor_name(const policy::judged_model& m, std::size_t tensor);

/// A tensor under the candidate that harms it most, as it was measured.
struct harmed_tensor {
    std::string file, tensor, recipe;
};

/// The first of them, worst first.
std::vector<harmed_tensor> most_harmed(const policy::judged_model& m, std::size_t most);

/// The tensors that a recipe harms most, worst first: by whether a limit is reached, then by the
/// share of their own elements that is lost.
report::section worst_section(const policy::judged_model& m);

/// The candidates of every class: what they would save and what speaks against them.
report::section candidates_section(const policy::judged_model& m);

/// The results of mx.report/2, one per tensor, and the members behind them.
report::record_list decision_records(const policy::judged_model& m);
report::record verdict_members(const policy::judged_model& m, const verdict_context& c);

}  // namespace mx::pages
