// SPDX-License-Identifier: Apache-2.0
// From a plan to a safetensors file.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "datasets/generators/tensor_spec.hpp"

namespace mx::synth {

struct write_control {
    int threads = 0;  ///< 0: as many as OpenMP offers; the bytes do not depend on it
    const std::atomic<bool>* cancel = nullptr;  ///< raise it to stop; the write throws (cancelled)
    /// Elements done and in all; called from one thread at a time.
    std::function<void(std::uint64_t done, std::uint64_t total)> on_progress;
};

/// Writes the tensors of `plan`, drawn with `seed`, to the safetensors file `path`, which appears
/// whole or not at all. Memory is bounded: 1 MiB per thread and one float32 per column. Throws
/// base::error: output when the file cannot be written, cancelled when asked to stop.
void write_checkpoint(const std::string& path, const std::vector<tensor_spec>& plan,
                      std::uint64_t seed, const std::map<std::string, std::string>& metadata,
                      const write_control& control);

}  // namespace mx::synth
