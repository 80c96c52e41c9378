// SPDX-License-Identifier: Apache-2.0
// Decoding of the blocks of ggml's quantized types (ggml-org/ggml: ggml/src/ggml-common.h has the
// blocks, ggml/src/ggml-quants.c decodes them).
#pragma once

#include <cstddef>
#include <span>

namespace mx::io {

/// One block as it is stored. Numbers of two and four bytes are in the order of the file.
struct gguf_block {
    const std::byte* bytes;
    bool big_endian;
};

/// Fills `out` (the block's elements) with the results of ggml's decoder: products of scales and
/// codes in float32, which are exact, and at most one rounding where a minimum is added or
/// subtracted. NaN and Inf scales give NaN and Inf as IEEE multiplication does.
using gguf_decoder = void(const gguf_block& block, std::span<float> out);

gguf_decoder decode_q1_0;  ///< one bit: d or -d
gguf_decoder decode_q4_0, decode_q4_1, decode_q5_0, decode_q5_1, decode_q8_0;
gguf_decoder decode_q2_k, decode_q3_k, decode_q4_k, decode_q5_k, decode_q6_k, decode_q8_k;
/// Points of io/gguf/gguf_grids.hpp.
gguf_decoder decode_iq1_s, decode_iq1_m, decode_iq2_xxs, decode_iq2_xs, decode_iq2_s;
gguf_decoder decode_iq3_xxs, decode_iq3_s;
gguf_decoder decode_iq4_nl, decode_iq4_xs, decode_tq1_0, decode_tq2_0;
/// Code 8 is +0, and every scale byte is a power of two: 255 is 2^128, not NaN.
gguf_decoder decode_mxfp4;
/// Scale bytes are UE4M3 whose top bit is ignored; 0x7f is 0.
gguf_decoder decode_nvfp4;

}  // namespace mx::io
