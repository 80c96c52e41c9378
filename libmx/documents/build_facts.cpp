// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/build_facts.hpp"

namespace mx::documents {

#if defined(__clang__)
const std::string_view compiler = "clang " __clang_version__;
#else
const std::string_view compiler = "gcc " __VERSION__;
#endif
const std::string_view build_type = MX_BUILD_TYPE;
const std::string_view version = MX_VERSION;

}  // namespace mx::documents
