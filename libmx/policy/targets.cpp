// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/targets.hpp"

#include <algorithm>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"

namespace mx::policy {

std::string_view to_string(support s) {
    constexpr std::array words{"native", "emulated", "absent"};
    return words[static_cast<std::size_t>(s)];
}

const target& find_target(std::string_view name) {
    std::vector<std::string_view> names;
    for (const target& t : targets) {
        if (t.name == name) return t;
        names.push_back(t.name);
    }
    throw base::error(base::error_kind::usage, base::unknown("target", name, names));
}

supported_format support_of(const target& t, std::string_view preset) {
    if (t.any()) return {preset, support::emulated};
    for (const supported_format& f : t.formats) {
        if (f.preset == preset) return f;
    }
    return {preset, support::absent};
}

bool supported_anywhere(std::string_view preset) {
    return std::any_of(targets.begin(), targets.end(), [&](const target& t) {
        return !t.any() && support_of(t, preset).is != support::absent;
    });
}

}  // namespace mx::policy
