// SPDX-License-Identifier: Apache-2.0
// How these libraries were built.
#pragma once

#include <string_view>

namespace mx::documents {

extern const std::string_view compiler;    ///< "gcc 12.2.0"
extern const std::string_view build_type;  ///< "Release"; "none" if none was chosen
extern const std::string_view version;     ///< of mx

}  // namespace mx::documents
