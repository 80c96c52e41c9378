// SPDX-License-Identifier: Apache-2.0
// Two results files against each other: the figures of each tensor under each recipe, before and
// after.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/analysis/results_input.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/report/record_list.hpp"

namespace mx::diff {

/// The figures that are compared: those of every result that need no option.
inline constexpr std::array<std::string_view, 12> changing_figures{"rmse",
                                                                   "nrmse",
                                                                   "sqnr_db",
                                                                   "rms",
                                                                   "gain",
                                                                   "overflow_rate",
                                                                   "clamp_rate",
                                                                   "underflow_rate",
                                                                   "subnormal_rate",
                                                                   "collapsed_block_rate",
                                                                   "dead_block_rate",
                                                                   "saturated_block_rate"};

struct changes_request {
    std::array<std::string, 2> labels;
    std::vector<std::string> recipes;  ///< names or patterns; none: all
    std::vector<std::string> globs;    ///< of tensors; none: all
    std::vector<std::string> roles;    ///< none: all
};

/// A result that was not compared, and why.
struct uncompared {
    std::string file;  ///< the results file that has it
    std::string tensor, recipe, reason;
};

/// The results of one recipe.
struct recipe_changes {
    std::string recipe;
    std::uint64_t compared = 0;
    std::uint64_t changed = 0;  ///< of these, those of which a figure differs
    std::uint64_t fell = 0;     ///< of these, those whose SQNR is lower
    std::uint64_t rose = 0;
    std::uint64_t undefined = 0;  ///< of these, those whose SQNR is defined in one file only
    double largest_fall = 0;      ///< of the SQNR, in dB
    double largest_rise = 0;
    std::string fallen, risen;  ///< tensors with these
};

struct changes_result {
    /// One record per tensor and recipe that both files have: each figure as FIGURE_a, FIGURE_b and
    /// FIGURE_change, which is b - a, null where one is undefined. The records of a tensor follow
    /// each other; tensors with the largest change of the SQNR come first, and those of equal
    /// change by the largest change of a rate.
    report::record_list results;
    std::vector<recipe_changes> summary;  ///< in the order of the first file
    std::vector<uncompared> left_out;
    bool identical = false;  ///< no figure differs, and something was compared
};

/// The members of the records in changes_result::results.
void declare_changes(report::member_list& to);

/// Reads two results files with the members that are compared. Throws base::error.
std::vector<analysis::results_input> open_for_changes(
    const std::vector<std::string>& paths,
    const analysis::results_opener& open = analysis::open_results);

/// Compares the results of two files by tensor and recipe; where a file has these more than once,
/// the first counts. Throws base::error: input if both have results but no recipe in common, usage
/// for a recipe or a role that is unknown.
changes_result compare_results(const analysis::results_input& a, const analysis::results_input& b,
                               const changes_request& request);

}  // namespace mx::diff
