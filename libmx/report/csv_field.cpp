// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/csv_field.hpp"

namespace mx::report {

std::string csv_field(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + '"';
}

}  // namespace mx::report
