// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/start_thread.hpp"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "libmx/base/floating_point_environment.hpp"
#include "libmx/base/status.hpp"

namespace mx::base {

std::thread start_thread(std::function<void()> body) {
    try {
        return std::thread([body = std::move(body)] {
            const floating_point_environment ours;
            body();
        });
    } catch (const std::system_error& e) {
        throw error(error_kind::unavailable,
                    fmt::format("the system grants no further thread ({}); raise its limits "
                                "(ulimit -u, ulimit -v)",
                                e.code().message()));
    }
}

}  // namespace mx::base
