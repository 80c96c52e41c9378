// SPDX-License-Identifier: Apache-2.0
// What mx lint found, as a document and for continuous integration.
#pragma once

#include <vector>

#include "libmx/pages/views/ci_output.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"
#include "libmx/studies/lint/lint.hpp"

namespace mx::pages {

/// mx.lint/1: the verdict, findings grouped by rule, what was looked at. `all`: every finding in
/// the table, else the first of each rule.
report::document lint_document(const lint::checkpoint& c, const lint::lint_outcome& o, bool all);
report::document_schema lint_schema();

/// A case per rule; failed by errors.
std::vector<ci_case> lint_cases(const lint::checkpoint& c, const lint::lint_outcome& o);

/// The list of rules, for --rules.
report::document lint_rules_document();

}  // namespace mx::pages
