// SPDX-License-Identifier: Apache-2.0
// How much of a win is an artefact of where the tensors lie in their binades: the same contest with
// the values multiplied by 2^(i/16).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libmx/studies/compare/board.hpp"
#include "libmx/studies/compare/cells.hpp"
#include "libmx/studies/compare/families.hpp"

namespace mx::compare {

inline constexpr std::size_t phase_count = 16;

/// The factors 2^(i/16), i = 0 .. 15, rounded to float32.
std::vector<float> phase_factors();

/// The two cells with the least error at phase 0, phase by phase.
struct phase_contest {
    std::size_t best = 0, second = 0;  ///< indices into sweep_plan::cells
    std::vector<double> ratio;         ///< error of the second over that of the best: above 1 while
                                       ///< the order holds
    double least = 0, greatest = 0;    ///< of the ratios
    std::size_t reversed = 0;          ///< phases with a ratio below 1

    /// What the best is ahead by at phase 0: ratio - 1.
    double win() const { return ratio.front() - 1; }
    /// How far the ratio moves with the phase: greatest / least - 1.
    double swing() const { return greatest / least - 1; }
    /// Whether the win says less about the cells than about where the values lie.
    bool within_swing() const { return win() < swing(); }
};

/// The contest between the cells `among`, from their errors by cell (in the order of `among`) and
/// phase. None unless two of them have a positive error in every phase.
std::optional<phase_contest> judge_phases(std::span<const std::size_t> among,
                                          const std::vector<std::vector<double>>& errors);

/// Errors of a cell by phase: on one tensor its nrmse (mean over seeds), over several their
/// geometric mean, tensors left out that are undefined or exact under any cell of `among`, or of
/// which a phase counts other elements than phase 0 (beyond float32 they are lost). Empty when none
/// remains.
std::vector<std::vector<double>> phase_errors(const board& b, const sweep_plan& plan,
                                              std::span<const std::size_t> among,
                                              std::span<const std::size_t> tensors);

/// The verdict on a contest in one sentence, with the cells called `best` and `second`.
std::string phase_sentence(const phase_contest& c, const std::string& best,
                           const std::string& second);

}  // namespace mx::compare
