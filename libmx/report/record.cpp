// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/record.hpp"

namespace mx::report {

value::value() noexcept = default;
value::value(const value&) = default;
value::value(value&&) noexcept = default;
value& value::operator=(const value&) = default;
value& value::operator=(value&&) noexcept = default;
value::~value() = default;

const value* find(const record& r, std::string_view name) {
    for (const auto& [key, v] : r) {
        if (key == name) return &v;
    }
    return nullptr;
}

}  // namespace mx::report
