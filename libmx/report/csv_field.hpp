// SPDX-License-Identifier: Apache-2.0
// A field of a CSV line, written the same way wherever CSV is.
#pragma once

#include <string>

namespace mx::report {

/// `text` as a field of RFC 4180: in quotes, inner ones doubled, where it has to be.
std::string csv_field(const std::string& text);

}  // namespace mx::report
