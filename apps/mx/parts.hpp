// SPDX-License-Identifier: Apache-2.0
// --shard: the part of a run that a command computes; mx merge combines parts.
#pragma once

#include <string_view>

#include "apps/mx/cli.hpp"
#include "apps/mx/outputs.hpp"
#include "libmx/documents/parts.hpp"

namespace mx::app {

using documents::part_options;

/// Declares --shard, --page-sums if `with_page`, and the hidden option by which mx merge passes
/// parts. `command`: the name of the command. `o` must outlive the parser.
void declare_parts(parser& cmd, part_options& o, std::string_view command, bool with_page);

/// Throws base::error (usage) for a part without --json, or with outputs that need all parts.
void check_part_outputs(const part_options& o, const output_options& out);

}  // namespace mx::app
