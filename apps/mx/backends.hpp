// SPDX-License-Identifier: Apache-2.0
// Selects the backend of a run, and describes backends and GPUs.
#pragma once

#include <span>
#include <string>

#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/recipe.hpp"

namespace mx::app {

/// The backend given by --backend (empty if not given) or a setting, else the fastest available.
/// Throws base::error with the source of the name: usage if no backend has it, unavailable if it
/// cannot run here.
const codec::backend& chosen_backend(const std::string& option);

/// Output of --verbose on stderr: "mx: backend avx512, 2 threads", and a line for each of `recipes`
/// that the backend leaves to the scalar one.
void print_backend(const codec::backend& b, int threads, std::span<const codec::recipe> recipes);

/// Description of a GPU: "NVIDIA H200, sm_90, 132 SMs, up to 1980 MHz, 139.8 GiB".
std::string device_text(const base::cuda::device_facts& f);

/// "13.0" of 13000.
std::string cuda_version_text(int version);

/// "1 thread", "2 threads".
std::string threads_text(int threads);

}  // namespace mx::app
