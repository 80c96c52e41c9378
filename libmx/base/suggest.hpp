// SPDX-License-Identifier: Apache-2.0
// "did you mean": the nearest of a list of valid words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libmx/base/named.hpp"
#include "libmx/base/status.hpp"

namespace mx::base {

/// The candidate with the smallest edit distance to `word` (insert, delete, replace, swap of
/// neighbours; case ignored); the first of equals. Empty when there are no candidates.
std::string nearest(std::string_view word, const std::vector<std::string_view>& candidates);

/// nearest, or empty if more than a third of the characters of `word` (at least one) would change.
std::string similar(std::string_view word, const std::vector<std::string_view>& candidates);

/// What to write instead of a pattern that matches no name: "it is a part of 'a.q_proj.weight'; -t
/// '*q_proj*' matches such names", else the nearest name. `option` takes the pattern.
std::string no_match(std::string_view pattern, std::string_view option,
                     const std::vector<std::string_view>& names);

/// "'word' is not ONE OF ...; did you mean 'x'?": the message of all lists, e.g. unknown("scale
/// rule", "flor", names).
std::string unknown(std::string_view what, std::string_view word,
                    const std::vector<std::string_view>& candidates);

/// The row named `name`. Throws base::error (usage) with that message if there is none.
template <typename Rows>
const auto& row_named(const Rows& rows, std::string_view what, std::string_view name) {
    if (const auto* row = find_named(rows, name)) return *row;
    refuse(unknown(what, name, names_of(rows)));
}

}  // namespace mx::base
