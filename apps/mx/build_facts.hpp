// SPDX-License-Identifier: Apache-2.0
// What this program was built as.
#pragma once

#include <string_view>

namespace mx::app {

extern const std::string_view compiler;    ///< "gcc 12.2.0"
extern const std::string_view build_type;  ///< "Release"; "none" where none was chosen
extern const std::string_view version;     ///< of mx
/// Whether it holds the oracle: that needs Boost, and builds with tests have it.
extern const bool has_oracle;

}  // namespace mx::app
