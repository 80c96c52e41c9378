// SPDX-License-Identifier: Apache-2.0
// What `mx dialects` prints: all dialects, one of them, or what two answer differently.
#pragma once

#include <string>

#include "libmx/codec/dialects.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

/// "255 R": the answer of a column in short, with its evidence mark.
std::string short_answer(const codec::dialect& d, std::string_view column);

/// Every dialect with every answer; the table shows the questions asked most.
report::document dialects_document();

/// One dialect: every question, its answer and the evidence for it.
report::document dialect_document(const codec::dialect& d);

/// The questions that `a` and `b` answer differently.
report::document dialect_differences(const codec::dialect& a, const codec::dialect& b);

}  // namespace mx::app
