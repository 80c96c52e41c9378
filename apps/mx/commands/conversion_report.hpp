// SPDX-License-Identifier: Apache-2.0
// What cast, quantize and dequantize say when they are done.
#pragma once

#include <string>

#include "libmx/studies/convert/convert.hpp"

namespace mx::app {

/// Prints one line about the output and one per skipped tensor, unless `quiet`.
void report_conversion(const convert::conversion& done, const std::string& out, bool quiet);

}  // namespace mx::app
