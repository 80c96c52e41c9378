// SPDX-License-Identifier: Apache-2.0
// One record as JSON: a line, for logs that grow, or indented.
#pragma once

#include <string>

#include "libmx/report/record.hpp"

namespace mx::report {

/// The record in the format of write_json for results, without a newline.
std::string json_line(const record& r);
/// Indented, with a newline at the end.
std::string json_indented(const record& r);

}  // namespace mx::report
