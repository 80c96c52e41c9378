// SPDX-License-Identifier: Apache-2.0
// THE VERDICT as text: recommended recipes, tensors that keep their precision, cost, risks,
// confidence, and what was not measured. Every output derives it from a judged model.
#pragma once

#include <string>
#include <vector>

#include "libmx/policy/judged_model.hpp"
#include "libmx/report/document.hpp"

namespace mx::pages {

/// Context of the judgement.
struct verdict_context {
    std::string repeat;                 ///< the command that makes the page again; may be empty
    std::vector<std::string> warnings;  ///< sentences on the results
};

/// The summary: the verdict in sentences, a table of classes and recipes, the largest risks, the
/// best recipes of about 4, 6 and 8 bits, and what was not measured. Empty sections are omitted.
std::vector<report::section> verdict_sections(const policy::judged_model& m,
                                              const verdict_context& c);

/// Of the context, and tensors that make up most of the error of their class.
std::vector<std::string> verdict_warnings(const policy::judged_model& m, const verdict_context& c);

/// The verdict in one line without a line end, for chat and CI.
std::string verdict_line(const policy::judged_model& m);

/// The tensor's name, with what it is of if several inputs were measured.
std::string tensor_name(const policy::judged_model& m, std::size_t tensor);

/// A tensor under the candidate that harms it most, as measured.
struct harmed_tensor {
    std::string file, tensor, recipe;
    const report::given_command* by = nullptr;  ///< of the model's tensor; null: not known
};

/// The first of these, worst first.
std::vector<harmed_tensor> most_harmed(const policy::judged_model& m, std::size_t most);

/// The tensors that a recipe harms most, worst first: those that reach a limit, then by
/// policy::error_over_normal.
report::section worst_section(const policy::judged_model& m);

/// The candidates of every class: their savings and the objections.
report::section candidates_section(const policy::judged_model& m);

}  // namespace mx::pages
