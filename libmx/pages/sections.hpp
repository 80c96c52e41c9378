// SPDX-License-Identifier: Apache-2.0
// The sections of a review after its verdict, in page order. If data are missing, a line names the
// option that would provide them; if there cannot be any, the section is omitted.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "libmx/pages/review_data.hpp"
#include "libmx/report/document.hpp"

namespace mx::pages {

/// All tensors under every recipe, as an explorer. `worst_first` contains indices into the
/// review_data; a page that cannot hold all keeps the first.
report::section tensors_section(const review_data& e, const std::vector<std::size_t>& worst_first);
/// Records that several tensors share, with the worst tensor of each; largest difference first.
report::section groups_section(const review_data& e);
/// Inputs, recipes, and the meaning of their parts.
std::vector<report::section> basis_sections(const review_data& e, const review_options& o);
/// The metrics.
std::vector<report::section> definition_sections(const review_data& e);

/// The recommended cell of each tensor of the table; nullopt if the tensor keeps its precision or
/// nothing is recommended.
using chosen_cells = std::vector<std::optional<std::size_t>>;

/// The figure beside the answer: the error of every operand under every recipe relative to normal
/// data; of `mx compare`, relative to each other and to the baseline; of `mx cluster`, the shares
/// of blocks that get one code. By layer with a panel per module or, without layers, by tensor.
void add_excess(const review_data& e, const std::vector<std::size_t>& operands,
                const policy::policy& by, report::section& to);
void add_pairs(const review_data& e, report::section& to);
void add_ratios(const review_data& e, const std::vector<std::size_t>& tensors,
                const std::string& baseline, report::section& to);
void add_block_shares(const review_data& e, report::section& to);

/// Every tensor under its recommended recipe: its part of the error, and the effect of other
/// recipes.
report::section choices_section(const review_data& e, const chosen_cells& chosen);
/// Errors layer by layer.
report::section layers_section(const review_data& e);
/// Bits and SQNR, with the recommended mixture; error and block size; sources of error; overflow
/// and underflow.
report::section trade_section(const review_data& e, const chosen_cells& chosen);
/// Block maxima, codes and scales.
report::section blocks_section(const review_data& e);
/// Norm weights and the clamp zone.
report::section norms_section(const review_data& e);

}  // namespace mx::pages
