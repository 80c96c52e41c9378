// SPDX-License-Identifier: Apache-2.0
// What this program was built as.
#pragma once

#include "libmx/documents/build_facts.hpp"

namespace mx::app {

using documents::build_type;
using documents::compiler;
using documents::version;

/// Whether it holds the oracle: that needs Boost, and builds with tests have it.
extern const bool has_oracle;

}  // namespace mx::app
