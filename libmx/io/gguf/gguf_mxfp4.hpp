// SPDX-License-Identifier: Apache-2.0
// MXFP4 as ggml stores it: blocks of 17 bytes, a scale and 32 codes.
#pragma once

#include <memory>
#include <string>

#include "libmx/io/sources.hpp"

namespace mx::io {

/// The values of `blocks`, as BF16, which holds every one of them exactly. They are ggml's own
/// (ggml-org/llama.cpp: block_mxfp4, kvalues_mxfp4 and ggml_e8m0_to_fp32_half): code 8 is +0, a
/// product beyond float32 is Inf, and the scale byte 255 is 2^128 like any other, not NaN.
std::unique_ptr<byte_source> gguf_mxfp4_values(shared_source blocks);

}  // namespace mx::io
