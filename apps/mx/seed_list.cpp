// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/seed_list.hpp"

#include <algorithm>
#include <set>

#include "libmx/base/parsed.hpp"
#include "libmx/base/status.hpp"
#include "libmx/lab/request.hpp"

namespace mx::app {

using base::refuse;

std::uint64_t whole_number(const std::string& option, std::string_view text) {
    const auto n = base::parsed<std::uint64_t>(text);
    if (!n) refuse("{}: '{}' is not a number", option, text);
    return *n;
}

std::vector<std::uint64_t> seeds_of(const std::string& text) {
    constexpr std::size_t most = 100000;
    std::vector<std::uint64_t> seeds;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        const std::string part = text.substr(at, end - at);
        const std::size_t dots = part.find("..");
        const std::uint64_t first = whole_number("--seeds", part.substr(0, dots));
        const std::uint64_t last =
            dots == std::string::npos ? first : whole_number("--seeds", part.substr(dots + 2));
        if (last < first || last - first >= most) {
            refuse("--seeds: '{}' is no range of at most {} seeds", part, most);
        }
        for (std::uint64_t s = first;; ++s) {
            seeds.push_back(s);
            if (s == last) break;
        }
        at = end + 1;
    }
    const std::set<std::uint64_t> once(seeds.begin(), seeds.end());
    if (once.size() != seeds.size()) refuse("--seeds: '{}' has a seed twice", text);
    if (*once.rbegin() > lab::most_seed) {
        refuse("--seeds: {} is above {}", *once.rbegin(), lab::most_seed);
    }
    return seeds;
}

}  // namespace mx::app
