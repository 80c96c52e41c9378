// SPDX-License-Identifier: Apache-2.0
// --shard: the part of a run that a command makes; mx merge puts parts together.
#pragma once

#include <string_view>

#include "apps/mx/cli.hpp"
#include "apps/mx/outputs.hpp"
#include "libmx/documents/parts.hpp"

namespace mx::app {

using documents::part_options;

/// Declares --shard, --page-sums where `with_page`, and the hidden option by which mx merge hands
/// parts over. `command`: the name of the command. `o` has to live as long as the parser.
void declare_parts(parser& cmd, part_options& o, std::string_view command, bool with_page);

/// Refuses what parts do not have: a part without --json, or with outputs of the whole.
void check_part_outputs(const part_options& o, const output_options& out);

}  // namespace mx::app
