// SPDX-License-Identifier: Apache-2.0
// How much of a difference between cells depends on the position of the tensors' values in their
// binades: the same comparison with the values multiplied by 2^(i/16).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libmx/analysis/results_table.hpp"
#include "libmx/studies/compare/cells.hpp"
#include "libmx/studies/compare/families.hpp"

namespace mx::compare {

inline constexpr std::size_t phase_count = 16;

/// The factors 2^(i/16), i = 0 .. 15, rounded to float32.
std::vector<float> phase_factors();

/// The two cells with the smallest error at phase 0, phase by phase.
struct phase_contest {
    std::size_t best = 0, second = 0;  ///< indices into sweep_plan::cells
    std::vector<double> ratio;         ///< error of the second over that of the best: above 1 while
                                       ///< the order holds
    double least = 0, greatest = 0;    ///< of the ratios
    std::size_t reversed = 0;          ///< phases with a ratio below 1

    /// The lead of the best cell at phase 0: ratio - 1.
    double win() const { return ratio.front() - 1; }
    /// The variation of the ratio over the phases: greatest / least - 1.
    double swing() const { return greatest / least - 1; }
    /// Whether the lead is smaller than its variation over the phases.
    bool within_swing() const { return win() < swing(); }
};

/// Compares the cells `among` by their errors by cell (in the order of `among`) and phase. nullopt
/// unless two of them have a positive error in every phase.
std::optional<phase_contest> judge_phases(std::span<const std::size_t> among,
                                          const std::vector<std::vector<double>>& errors);

/// Errors of a cell by phase: on one tensor its nrmse (mean over seeds), over several tensors the
/// geometric mean. Leaves out tensors with an undefined or zero error under any cell of `among`,
/// and tensors for which a phase counts fewer elements than phase 0 (because they exceed float32).
/// Empty if no tensor remains.
std::vector<std::vector<double>> phase_errors(const analysis::results_table& b,
                                              const sweep_plan& plan,
                                              std::span<const std::size_t> among,
                                              std::span<const std::size_t> tensors);

/// The result of the comparison in one sentence, with the cells called `best` and `second`.
std::string phase_sentence(const phase_contest& c, const std::string& best,
                           const std::string& second);

}  // namespace mx::compare
