// SPDX-License-Identifier: Apache-2.0
// Which backend a run uses, and what is said of backends and cards.
#pragma once

#include <span>
#include <string>

#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/recipe.hpp"

namespace mx::app {

/// The backend that --backend (empty when not given) or a setting asks for, else the fastest one
/// here. Throws base::error saying which of them named it: usage when no backend has that
/// name, unavailable when it cannot run here.
const codec::backend& chosen_backend(const std::string& option);

/// What --verbose says on stderr: "mx: backend avx512, 2 threads", and a line for each of `recipes`
/// that it leaves to the scalar one.
void say_backend(const codec::backend& b, int threads, std::span<const codec::recipe> recipes);

/// A card as people know it: "NVIDIA H200, sm_90, 132 SMs, up to 1980 MHz, 139.8 GiB".
std::string device_words(const base::cuda::device_facts& f);

/// "13.0" of 13000.
std::string cuda_version_text(int version);

/// "1 thread", "2 threads".
std::string threads_text(int threads);

}  // namespace mx::app
