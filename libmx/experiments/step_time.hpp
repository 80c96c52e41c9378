// SPDX-License-Identifier: Apache-2.0
// Estimated duration of a training step on this machine.
#pragma once

#include <string_view>

#include "libmx/lab/request.hpp"

namespace mx::experiments {

struct step_time {
    double seconds = 0;
    double processor_seconds = 0;  ///< of all threads; less than `seconds` if they had to wait
};

/// The time of a step, extrapolated linearly from steps of two smaller batches that are timed now.
/// Takes some tenths of a second, or more if a single sequence takes longer. Differs from call to
/// call.
step_time time_of_step(const lab::run_request& r, int threads, std::string_view backend = {});

}  // namespace mx::experiments
