// SPDX-License-Identifier: Apache-2.0
// Recorded trainings of the proxy against our own: gradients at given parameters and batches, and
// whole trajectories.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "libmx/conformance/verify/verify.hpp"

namespace mx::lab {

/// The cases of a folder: the path of each NAME.json that has NAME.inputs.safetensors beside it,
/// sorted. Empty for what is no folder.
std::vector<std::string> recorded_cases(const std::string& folder);

struct replay_options {
    std::size_t show = 10;
    int threads = 1;  ///< recorded cases are small
    std::string backend;
    const std::atomic<bool>* cancel = nullptr;
};

/// Replays a case, one verification per scheme. What is held to what:
/// - fixed parameters: relative L2 distance of all stored gradients at most 1e-6 for schemes
/// without
///   bfloat16 or with fewer than four mantissa bits in every operand, else 1e-4 (e4m3 up to width
///   64: 1e-6); losses 1e-6; single elements to the bit where two independent runs with sums in
///   different orders agreed to the bit, else within a fiftieth of the tensor's rms or a 32nd of
///   themselves (float32: 1e-4 of the rms, or ten times what those runs differed by);
/// - every stored tensor that is whole has the norm and the sum that the case states;
/// - trajectories: losses within 1e-6 at steps 1 and 2 and 1e-2 to the last step, 1e-6 to the last
///   step for fp32 and mxfp4_e2m1.
/// Whatever misses its bound is a difference, named by tensor and element. Throws base::error
/// (input) for files that are missing, damaged or contradict each other.
std::vector<conformance::verify::verification> replay(const std::string& json_path,
                                                      const replay_options& options);

}  // namespace mx::lab
