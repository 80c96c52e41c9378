// SPDX-License-Identifier: Apache-2.0
// The output of mx explain as documents. Throws base::error (usage) for unknown names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"

namespace mx::documents {

/// Every element, scale and block format with its exact limits.
report::document formats();

/// Every dialect without names, one with all its answers, or the differences of two.
report::document dialects(const std::vector<std::string>& names);

/// Scale rules, roundings and keys of recipes: all of them, or those of `names`.
report::document rules(const std::vector<std::string>& names);

/// The definition and unit of every metric, or of those of `names`.
report::document metrics(const std::vector<std::string>& names);

/// Every accumulator model, or one with all its fields: NAME[:key=value,...].
report::document accumulators(const std::vector<std::string>& names);

// Their schemas, and those of one dialect, the differences of two, and one model.
report::document_schema dialects_schema();
report::document_schema dialect_schema();
report::document_schema dialect_differences_schema();
report::document_schema rules_schema();
report::document_schema formats_schema();
report::document_schema codes_schema();
report::document_schema metrics_schema();
report::document_schema accumulators_schema();
report::document_schema accumulator_schema();

struct explain_options {
    std::string subject;  ///< a list, or what is in one
    /// Of a list: its entries; of a format: codes; for "policy": its name or file.
    std::vector<std::string> names;
    std::string target;  ///< for "policy"
};

/// A list (formats, rules, dialects, accumulators, metrics), an entry of one, the effect of a
/// recipe, the values of codes, or the rules by which a policy recommends.
report::document explain(const explain_options& o);

/// The lists that explain prints, and the names of all their entries.
std::vector<std::string_view> explained_names();

}  // namespace mx::documents
