// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/build_facts.hpp"

namespace mx::app {

#if defined(__clang__)
const std::string_view compiler = "clang " __clang_version__;
#else
const std::string_view compiler = "gcc " __VERSION__;
#endif
const std::string_view build_type = MX_BUILD_TYPE;
const std::string_view version = MX_VERSION;
#if defined(MX_HAS_ORACLE)
const bool has_oracle = true;
#else
const bool has_oracle = false;
#endif

}  // namespace mx::app
