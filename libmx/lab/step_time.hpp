// SPDX-License-Identifier: Apache-2.0
// How long a step of a training will take here.
#pragma once

#include <string_view>

#include "libmx/lab/request.hpp"

namespace mx::lab {

/// Seconds of a step, from steps of two smaller batches that are made now: a line through both.
/// Takes some tenths of a second, more where a single sequence takes longer. Differs from call to
/// call.
double seconds_of_step(const run_request& r, int threads, std::string_view backend = {});

}  // namespace mx::lab
