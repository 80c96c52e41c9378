// SPDX-License-Identifier: Apache-2.0
// The output of mx formats, dialects and explain as documents. Throws base::error (usage) for
// unknown names.
#pragma once

#include <string>
#include <vector>

#include "libmx/report/document.hpp"

namespace mx::documents {

/// Every element, scale and block format with its exact limits.
report::document formats();

/// Every dialect without names, one with all its answers, or the differences of two.
report::document dialects(const std::vector<std::string>& names);

struct explain_options {
    std::string subject;             ///< a recipe, an element or scale format, or "policy"
    std::vector<std::string> codes;  ///< of a format; of "policy": the name or file of one
    std::string target;              ///< of "policy"
};

/// The effect of a recipe, the values of codes, or the rules by which a policy recommends.
report::document explain(const explain_options& o);

}  // namespace mx::documents
