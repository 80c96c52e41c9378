// SPDX-License-Identifier: Apache-2.0
// Compares recorded training runs of the proxy with runs of mx train: gradients at given parameters
// and batches, and whole trajectories.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "libmx/conformance/verify/verify.hpp"

namespace mx::experiments {

/// The sorted paths of every NAME.json in a folder with a NAME.inputs.safetensors next to it. Empty
/// if `folder` is not a folder.
std::vector<std::string> recorded_cases(const std::string& folder);

struct replay_options {
    std::size_t show = 10;
    int threads = 1;  ///< recorded cases are small
    std::string backend;
    const std::atomic<bool>* cancel = nullptr;
};

/// Replays a case, with one verification per scheme. Bounds:
/// - fixed parameters: relative L2 distance of all stored gradients at most 1e-6 for schemes
///   without bfloat16 or with fewer than four mantissa bits in every operand, else 1e-4 (e4m3 up to
///   width 64: 1e-6). Losses: 1e-6. Single elements are compared bit for bit if two independent
///   runs with different summation orders agreed bit for bit; else within 1/50 of the tensor's rms
///   or 1/32 of the element (float32: 1e-4 of the rms, or ten times the difference of those runs);
/// - every tensor that is stored whole has the norm and the sum stated in the case;
/// - trajectories: losses within 1e-6 at steps 1 and 2 and within 1e-2 up to the last step; for
///   fp32 and mxfp4_e2m1 within 1e-6 up to the last step.
/// A value outside its bound is a difference, listed with tensor and element. Throws base::error
/// (input) for files that are missing, damaged or contradictory.
std::vector<conformance::verify::verification> replay(const std::string& json_path,
                                                      const replay_options& options);

}  // namespace mx::experiments
