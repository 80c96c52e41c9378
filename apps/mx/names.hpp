// SPDX-License-Identifier: Apache-2.0
// Names given on the command line, looked up in the lists they belong to.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"

namespace mx::app {

/// The names of the rows of a list.
template <typename List>
std::vector<std::string_view> names_of(const List& list) {
    std::vector<std::string_view> names;
    for (const auto& row : list) names.push_back(row.name);
    return names;
}

/// Throws base::error (usage): "--round: unknown rounding 'foo'; did you mean 'x'? ...".
[[noreturn]] inline void unknown_name(std::string_view option, std::string_view what,
                                      const std::string& name,
                                      const std::vector<std::string_view>& valid) {
    throw base::error(base::error_kind::usage,
                      fmt::format("{}: {}", option, base::unknown(what, name, valid)));
}

}  // namespace mx::app
