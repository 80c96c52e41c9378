// SPDX-License-Identifier: Apache-2.0
// The sections of a review behind its verdict, in the order of the page. What the data do not allow
// becomes a line that says which option would provide it, or nothing where there can be nothing.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "libmx/pages/evidence.hpp"
#include "libmx/report/document.hpp"

namespace mx::pages {

/// All tensors under every recipe, as an explorer; `worst_first`: indices into the evidence, of
/// which a page that cannot hold all keeps the first.
report::section tensors_section(const evidence& e, const std::vector<std::size_t>& worst_first);
/// Records that tensors share, with the worst of these: where it stands out most first.
report::section groups_section(const evidence& e);
/// Findings of mx cluster, with their remedies.
std::vector<report::section> finding_sections(const evidence& e);
/// Inputs, recipes, and what their parts mean.
std::vector<report::section> basis_sections(const evidence& e, const review_options& o);
/// The metrics.
std::vector<report::section> definition_sections(const evidence& e);

/// The cell that is recommended for each tensor of the board; none where the tensor keeps its
/// precision or nothing is recommended.
using chosen_cells = std::vector<std::optional<std::size_t>>;

/// Every tensor under what is recommended for it: how far it is from normal data, where the error
/// is made, and what another recipe would do.
report::section choices_section(const evidence& e, const chosen_cells& chosen);
/// What mx compare found, from the tail of its document: ratios, wins, the best by role, and where
/// scale rules disagree. Nothing of other documents.
std::vector<report::section> comparison_sections(std::span<const result_set> sets);
/// Errors layer by layer.
report::section layers_section(const evidence& e);
/// Bits against SQNR, with the mixture that is chosen, error against block size, where the error
/// comes from, overflow and underflow.
report::section trade_section(const evidence& e, const chosen_cells& chosen);
/// Block maxima, codes and scales.
report::section blocks_section(const evidence& e);
/// Norm weights against the clamp zone.
report::section norms_section(const evidence& e);
/// Figures over dumps.
report::section steps_section(const evidence& e);

}  // namespace mx::pages
