// SPDX-License-Identifier: Apache-2.0
// Estimated duration of a training step on this machine.
#pragma once

#include <string_view>

#include "libmx/lab/request.hpp"

namespace mx::experiments {

/// Seconds per step, extrapolated linearly from steps of two smaller batches that are timed now.
/// Takes some tenths of a second, or more if a single sequence takes longer. Differs from call to
/// call.
double seconds_of_step(const lab::run_request& r, int threads, std::string_view backend = {});

}  // namespace mx::experiments
