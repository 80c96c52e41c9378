// SPDX-License-Identifier: Apache-2.0
// Rows of a list by their names.
#pragma once

#include <string_view>
#include <vector>

namespace mx::base {

/// The row named `name`, or nullptr.
template <typename Rows>
constexpr auto find_named(const Rows& rows, std::string_view name) -> decltype(&*rows.begin()) {
    for (const auto& row : rows) {
        if (row.name == name) return &row;
    }
    return nullptr;
}

/// The names of the rows, in their order.
template <typename Rows>
std::vector<std::string_view> names_of(const Rows& rows) {
    std::vector<std::string_view> names;
    for (const auto& row : rows) names.push_back(row.name);
    return names;
}

}  // namespace mx::base
