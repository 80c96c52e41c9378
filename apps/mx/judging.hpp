// SPDX-License-Identifier: Apache-2.0
// Options of all commands with a verdict: --policy, --target and --eval.
#pragma once

#include "apps/mx/cli.hpp"
#include "libmx/documents/judging.hpp"

namespace mx::app {

using documents::judging_options;
void declare_judging(parser& cmd, judging_options& o);

}  // namespace mx::app
