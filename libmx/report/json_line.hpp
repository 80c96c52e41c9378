// SPDX-License-Identifier: Apache-2.0
// One record as a line of JSON, for logs that grow.
#pragma once

#include <string>

#include "libmx/report/record.hpp"

namespace mx::report {

/// The record in the format of write_json for results, without a newline.
std::string json_line(const record& r);

}  // namespace mx::report
