// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/build_facts.hpp"

namespace mx::app {

#if defined(MX_HAS_ORACLE)
const bool has_oracle = true;
#else
const bool has_oracle = false;
#endif

}  // namespace mx::app
