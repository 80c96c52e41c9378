// SPDX-License-Identifier: Apache-2.0
// A CUDA device as a backend: docs/design/cuda.md. In a build without CUDA the row is there, and
// says what is missing.
#pragma once

#include <memory>
#include <string>

#include "libmx/codec/caster.hpp"
#include "libmx/codec/quantizer.hpp"

namespace mx::codec::cuda {

/// Why the first device cannot run the kernels; empty when it can. Starts CUDA's runtime.
std::string missing();

std::unique_ptr<quantizer> make_quantizer();

/// Casts of values without blocks, of every dialect, format and rounding.
std::unique_ptr<caster> make_caster(base::notices* notices);

}  // namespace mx::codec::cuda
