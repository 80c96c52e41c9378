// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/backends.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "libmx/base/status.hpp"

namespace mx::app {

const codec::backend& chosen_backend(const std::string& option) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): read before any thread is started
    const char* variable = std::getenv(backend_variable);
    const bool by_option = !option.empty();
    if (!by_option && (variable == nullptr || *variable == 0)) return codec::best_backend();
    try {
        return codec::backend_named(by_option ? option : std::string(variable));
    } catch (const base::error& e) {
        throw base::error(
            e.kind(),
            fmt::format("{}: {}", by_option ? "--backend" : backend_variable, e.message()));
    }
}

}  // namespace mx::app
