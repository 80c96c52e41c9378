// SPDX-License-Identifier: Apache-2.0
// What verdicts rest on, as options: --policy, --target and --eval of every command that gives one.
#pragma once

#include "apps/mx/cli.hpp"
#include "libmx/documents/judging.hpp"

namespace mx::app {

using documents::judging_options;
void declare_judging(parser& cmd, judging_options& o);

}  // namespace mx::app
