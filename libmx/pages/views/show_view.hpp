// SPDX-License-Identifier: Apache-2.0
// The output of `mx show` for a tensor: its map, its worst rows and blocks, and single blocks.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "libmx/report/command_line.hpp"
#include "libmx/report/document.hpp"
#include "libmx/studies/show/tensor_view.hpp"

namespace mx::pages {

/// The tensor, a map of its blocks in characters, its worst rows and blocks.
std::vector<report::section> tensor_sections(const show::tensor_view& v);

/// A block: its scale, the result of every scale rule, and its elements.
std::vector<report::section> block_sections(const show::tensor_view& v, const show::block_view& b);

/// A page of tensors, with figures instead of character maps, and every block of the views.
std::vector<report::section> show_page_sections(std::span<const show::tensor_view> views);

/// The blocks of a few tensors for a review: for each a map, its rows, its worst blocks, and the
/// worst of these in full, folded.
std::vector<report::section> worst_blocks_sections(std::span<const show::tensor_view> views);

/// The tensors of the views, the worst of `operands`. `by`: the command that shows them.
report::section worst_tensors_section(std::span<const show::tensor_view> views,
                                      std::size_t operands, const report::given_command& by);

}  // namespace mx::pages
