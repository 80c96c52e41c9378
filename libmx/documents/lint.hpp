// SPDX-License-Identifier: Apache-2.0
// What mx lint finds, as a document and for continuous integration.
#pragma once

#include <string>
#include <vector>

#include "libmx/lint/lint.hpp"
#include "libmx/pages/views/ci.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"

namespace mx::documents {

/// mx.lint/1. The verdict has a sentence per rule and severity, the table the first findings of
/// each rule, or `all`. `how`: the options that gave the result, in the order of mx::lint::lint.
report::document lint_document(const std::string& path, const lint::lint_options& how,
                               const lint::lint_result& result, bool all);
report::document_schema lint_schema();

/// A case per rule that was applied, which fails if it has findings of that severity.
std::vector<pages::ci_case> lint_cases(const std::string& path, const lint::lint_options& how,
                                       const std::vector<lint::finding>& findings,
                                       lint::severity level);

}  // namespace mx::documents
