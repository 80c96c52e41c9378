// SPDX-License-Identifier: Apache-2.0
// `mx bench --suite`: the code paths of commands, and the table of all paths.
#pragma once

#include <vector>

#include "libmx/bench/suite.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

/// The commands on a tensor in memory: analyze, compare, quantize, dequantize, cast and the rest.
/// All reuse the same output memory. `control` must outlive the result.
std::vector<bench::suite_case> command_cases(tensor::dtype type,
                                             const engine::run_control& control);

report::document suite_document(const std::vector<bench::suite_case>& cases,
                                const bench::suite_request& request, const bench::suite_table& t);

/// Defines #case.
void declare_suite(report::document_schema& to);

}  // namespace mx::app
