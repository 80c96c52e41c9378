// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/record.hpp"

namespace mx::report {

const value* find(const record& r, std::string_view name) {
    for (const auto& [key, v] : r) {
        if (key == name) return &v;
    }
    return nullptr;
}

}  // namespace mx::report
