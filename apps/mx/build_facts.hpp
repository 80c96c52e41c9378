// SPDX-License-Identifier: Apache-2.0
// Properties of this build.
#pragma once

#include "libmx/documents/build_facts.hpp"

namespace mx::app {

using documents::build_type;
using documents::compiler;
using documents::version;

/// Whether the build includes the oracle, which needs Boost; builds with tests include it.
extern const bool has_oracle;

}  // namespace mx::app
