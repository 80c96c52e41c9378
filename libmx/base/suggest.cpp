// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/suggest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "libmx/base/joined.hpp"

namespace mx::base {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Optimal string alignment distance over three rolling rows.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const bool same = lower(a[i - 1]) == lower(b[j - 1]);
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0u : 1u)});
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1])) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
        std::swap(before, above);
        std::swap(above, row);
    }
    return above[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
    // Words are input of the user: a bound keeps the work small.
    const std::string_view start = word.substr(0, 64);
    std::string best;
    std::size_t least = std::numeric_limits<std::size_t>::max();
    for (const std::string_view candidate : candidates) {
        const std::size_t d = distance(start, candidate);
        if (d < least) {
            least = d;
            best = candidate;
        }
    }
    return best;
}

std::string similar(std::string_view word, const std::vector<std::string_view>& candidates) {
    std::string best = nearest(word, candidates);
    const std::size_t most = std::max<std::size_t>(1, word.size() / 3);
    return distance(word.substr(0, 64), best) <= most ? best : std::string();
}

std::string no_match(std::string_view pattern, std::string_view option,
                     const std::vector<std::string_view>& names) {
    if (names.empty()) return "there are no tensors";
    const auto same = [](char a, char b) { return lower(a) == lower(b); };
    for (const std::string_view name : names) {
        const auto at = std::search(name.begin(), name.end(), pattern.begin(), pattern.end(), same);
        if (pattern.empty() || at == name.end()) continue;
        const std::string_view part =
            name.substr(static_cast<std::size_t>(at - name.begin()), pattern.size());
        return fmt::format("it is a part of '{}'; {} '*{}*' matches such names",
                           printable(std::string(name)), option, printable(std::string(part)));
    }
    // Edit distances to all names of a large model would take seconds.
    constexpr std::size_t compared = 10000;
    const std::vector<std::string_view> some(
        names.begin(),
        names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), compared)));
    return fmt::format("the nearest name is '{}'", printable(nearest(pattern, some)));
}

std::string unknown(std::string_view what, std::string_view word,
                    const std::vector<std::string_view>& candidates) {
    return fmt::format("unknown {} '{}'; did you mean '{}'? (known: {})", what, word,
                       nearest(word, candidates), joined(candidates, ", "));
}

}  // namespace mx::base
