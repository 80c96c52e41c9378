// SPDX-License-Identifier: Apache-2.0
// What this program was built as.
#pragma once

#include <string_view>

namespace mx::app {

#if defined(__clang__)
inline constexpr std::string_view compiler = "clang " __clang_version__;
#else
inline constexpr std::string_view compiler = "gcc " __VERSION__;
#endif
inline constexpr std::string_view build_type = MX_BUILD_TYPE;
inline constexpr std::string_view version = MX_VERSION;

}  // namespace mx::app
