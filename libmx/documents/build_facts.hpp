// SPDX-License-Identifier: Apache-2.0
// What these libraries were built as.
#pragma once

#include <string_view>

namespace mx::documents {

extern const std::string_view compiler;    ///< "gcc 12.2.0"
extern const std::string_view build_type;  ///< "Release"; "none" where none was chosen
extern const std::string_view version;     ///< of mx

}  // namespace mx::documents
