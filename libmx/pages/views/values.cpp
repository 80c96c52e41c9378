// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/values.hpp"

namespace mx::pages {

report::record document_head(const std::string& schema) {
    return {{"schema", schema},
            {"tool",
             report::record{{"name", std::string("mx")}, {"version", std::string(MX_VERSION)}}}};
}

}  // namespace mx::pages
