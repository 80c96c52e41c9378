// SPDX-License-Identifier: Apache-2.0
// THE LIST of columns of the dialect table: properties of dialects and their values as text. `mx
// dialects`, docs/design/dialects.md and the tests read it.
#pragma once

#include <span>
#include <string_view>

#include "libmx/codec/dialects.hpp"

namespace mx::codec {

/// What one enumerator of dialects.hpp stands for.
struct trait_description {
    std::string_view word;     ///< short, for a cell of a table
    std::string_view meaning;  ///< the whole answer
};

/// The value of a property for a dialect.
struct dialect_answer {
    trait_description words;
    evidence mark;
    bool applies;  ///< false: it has nothing the question is about; the words say what it lacks
};

struct dialect_column {
    std::string_view name;      ///< of the JSON member
    std::string_view title;     ///< of a table
    std::string_view question;  ///< one line
    dialect_answer (*answer)(const dialect&);
};

/// Whether conversions of single values saturate unless the request says otherwise. Those that do
/// not, make NaN (E4M3) or Inf (E5M2) of everything beyond the largest value, and of Inf in any
/// case.
bool saturates(const dialect& d);

/// Every property, those of scales first.
std::span<const dialect_column> dialect_columns();

/// The column named `name`, or nullptr.
const dialect_column* find_dialect_column(std::string_view name);

/// The meaning of an evidence mark.
trait_description description_of(evidence mark);

/// Every mark, best first.
std::span<const evidence> evidence_marks();

}  // namespace mx::codec
