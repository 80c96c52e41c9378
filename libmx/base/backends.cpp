// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/backends.hpp"

#include <fmt/format.h>

#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"

namespace mx::base {

std::size_t best_backend() {
    std::size_t best = 0;
    for (std::size_t i = 0; i < backends.size(); ++i) {
        // Querying a device starts its runtime.
        if (!backends[i].device && backends[i].available()) best = i;
    }
    return best;
}

std::size_t backend_named(std::string_view name) {
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < backends.size(); ++i) {
        const backend& b = backends[i];
        names.push_back(b.name);
        if (b.name != name) continue;
        const std::string why = b.missing();
        if (why.empty()) return i;
        throw error(error_kind::unavailable,
                    fmt::format("backend {} cannot run here{}; 'mx version' lists what can", name,
                                b.device ? ": " + why : ""));
    }
    refuse(unknown("backend", name, names));
}

}  // namespace mx::base
