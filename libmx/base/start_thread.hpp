// SPDX-License-Identifier: Apache-2.0
// Single threads; those of a loop start in parallel.hpp.
#pragma once

#include <functional>
#include <thread>

namespace mx::base {

/// Runs `body`, which must not throw, on a thread with a floating_point_environment. Throws
/// base::error (unavailable) if the system grants no thread.
std::thread start_thread(std::function<void()> body);

}  // namespace mx::base
