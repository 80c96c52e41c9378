// SPDX-License-Identifier: Apache-2.0
// A CUDA device as a backend: docs/design/cuda.md. In a build without CUDA the row is there, and
// says what is missing.
#pragma once

#include <memory>
#include <string>

#include "libmx/quantize/caster.hpp"
#include "libmx/quantize/quantizer.hpp"

namespace mx::quantize::cuda {

/// Why the first device cannot run the kernels; empty when it can. Starts CUDA's runtime.
std::string missing();

std::unique_ptr<quantizer> make_quantizer();

/// Casts of values without blocks, of every dialect, format and rounding.
std::unique_ptr<caster> make_caster(base::notices* notices);

}  // namespace mx::quantize::cuda
