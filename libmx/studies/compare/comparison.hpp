// SPDX-License-Identifier: Apache-2.0
// Evaluates the results of a sweep.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/studies/compare/cells.hpp"
#include "libmx/studies/compare/families.hpp"
#include "libmx/studies/compare/phases.hpp"
#include "libmx/studies/compare/ranking.hpp"
#include "libmx/studies/compare/series.hpp"

namespace mx::compare {

/// The cells ranked on the tensors of one role.
struct role_ranking {
    std::string role;
    std::vector<std::size_t> tensors;
    ranking ranks;
};

/// The best of the cells with at least `bits` and less than `bits` + 1 bits per element.
struct bits_class {
    int bits = 0;
    std::size_t best = 0;    ///< place in the overall ranking
    std::size_t second = 0;  ///< likewise; equal to `best` when it is alone
    std::size_t cells = 0;
};

/// Cells whose ranking is followed through the phases: a group of scale rules, or all.
struct phase_group {
    std::string name;  ///< of the family; "" for all cells
    std::vector<std::size_t> cells;
    std::vector<std::vector<double>> errors;  ///< over all tensors, by cell and phase
    std::optional<phase_contest> contest;
};

struct comparison {
    analysis::results_table table;
    std::vector<std::size_t> tensors;  ///< of the table: those that are ranked
    ranking overall;
    std::vector<bool> best;           ///< by place: nothing stands before it
    std::vector<bool> front;          ///< by place: on the Pareto front of bits against SQNR
    std::vector<bits_class> classes;  ///< fewest bits first
    std::vector<role_ranking> roles;  ///< in the order of the list of roles
    std::vector<layer_series> series;
    std::vector<family> scale_groups;
    std::vector<analysis::scale_pairs> scale_differences;  ///< by group
    std::vector<phase_group> phases;  ///< all cells first; empty without a phase sweep
};

/// The request for `analyze`. Its recipes are those of the plan.
analysis::analysis_request request_of(const sweep_plan& plan, bool phase_sweep);

/// Which tensors are ranked together; none: all. The rankings by role have every tensor.
using ranked_tensors = std::function<bool(const analysis::tensor_identity&)>;

/// Evaluates the results of that request. If `ranked` holds for no tensor, all are ranked.
comparison evaluate(const sweep_plan& plan, const analysis::analysis& a, bool phase_sweep,
                    const ranked_tensors& ranked = {});

/// Whether the order of a cell and the next is uncertain: their ratios differ by less than the
/// variation over seeds.
bool within_interval(const standing& a, const standing& b);

/// The share of blocks whose scale bytes differ between members `a` and `b` of a scale group; null
/// without blocks.
report::value scale_difference(const comparison& c, std::size_t group, std::size_t a,
                               std::size_t b);

/// A standing as a record: recipe, ratio with interval, wins, SQNR, bits, rates.
report::record standing_record(const sweep_plan& plan, const standing& s);

/// The members that mx compare adds to a document; `series` is empty: see series_records.
report::record comparison_members(const sweep_plan& plan, const comparison& c);
void declare_comparison(report::document_schema& to);

/// The member `series`, with a figure for every tensor, cell and series_figure; generated when
/// read.
report::record_list series_records(std::shared_ptr<const sweep_plan> plan,
                                   std::shared_ptr<const comparison> c);

}  // namespace mx::compare
