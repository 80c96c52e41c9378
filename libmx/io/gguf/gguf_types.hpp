// SPDX-License-Identifier: Apache-2.0
// THE LIST of tensor types in GGUF files: ggml's numbers for them and how they are stored
// (ggml-org/llama.cpp, ggml/include/ggml.h and ggml/src/ggml-common.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "libmx/io/gguf/gguf_blocks.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::io {

struct gguf_type {
    std::uint32_t id;
    std::string_view name;
    std::uint32_t block_elements;  ///< consecutive elements of a row that are stored together
    std::uint32_t block_bytes;
    /// The dtype of its decoded tensors; none for types that are only named.
    std::optional<tensor::dtype> read_as = {};
    /// Decodes a block, to F32 or BF16; none: stored as the dtype itself.
    gguf_decoder* decode = nullptr;
};

/// The one type whose values have a further scale in another array (quantized/layouts.hpp).
inline constexpr std::string_view gguf_nvfp4 = "NVFP4";

/// Q8_1, which is only named, is for activations in memory. Numbers that are missing here are types
/// that ggml has removed.
inline constexpr std::array gguf_types{
    gguf_type{0, "F32", 1, 4, tensor::dtype::f32},
    gguf_type{1, "F16", 1, 2, tensor::dtype::f16},
    gguf_type{2, "Q4_0", 32, 18, tensor::dtype::f32, decode_q4_0},
    gguf_type{3, "Q4_1", 32, 20, tensor::dtype::f32, decode_q4_1},
    gguf_type{6, "Q5_0", 32, 22, tensor::dtype::f32, decode_q5_0},
    gguf_type{7, "Q5_1", 32, 24, tensor::dtype::f32, decode_q5_1},
    gguf_type{8, "Q8_0", 32, 34, tensor::dtype::f32, decode_q8_0},
    gguf_type{9, "Q8_1", 32, 36},
    gguf_type{10, "Q2_K", 256, 84, tensor::dtype::f32, decode_q2_k},
    gguf_type{11, "Q3_K", 256, 110, tensor::dtype::f32, decode_q3_k},
    gguf_type{12, "Q4_K", 256, 144, tensor::dtype::f32, decode_q4_k},
    gguf_type{13, "Q5_K", 256, 176, tensor::dtype::f32, decode_q5_k},
    gguf_type{14, "Q6_K", 256, 210, tensor::dtype::f32, decode_q6_k},
    gguf_type{15, "Q8_K", 256, 292, tensor::dtype::f32, decode_q8_k},
    gguf_type{16, "IQ2_XXS", 256, 66, tensor::dtype::f32, decode_iq2_xxs},
    gguf_type{17, "IQ2_XS", 256, 74, tensor::dtype::f32, decode_iq2_xs},
    gguf_type{18, "IQ3_XXS", 256, 98, tensor::dtype::f32, decode_iq3_xxs},
    gguf_type{19, "IQ1_S", 256, 50, tensor::dtype::f32, decode_iq1_s},
    gguf_type{20, "IQ4_NL", 32, 18, tensor::dtype::f32, decode_iq4_nl},
    gguf_type{21, "IQ3_S", 256, 110, tensor::dtype::f32, decode_iq3_s},
    gguf_type{22, "IQ2_S", 256, 82, tensor::dtype::f32, decode_iq2_s},
    gguf_type{23, "IQ4_XS", 256, 136, tensor::dtype::f32, decode_iq4_xs},
    gguf_type{24, "I8", 1, 1, tensor::dtype::i8},
    gguf_type{25, "I16", 1, 2, tensor::dtype::i16},
    gguf_type{26, "I32", 1, 4, tensor::dtype::i32},
    gguf_type{27, "I64", 1, 8, tensor::dtype::i64},
    gguf_type{28, "F64", 1, 8, tensor::dtype::f64},
    gguf_type{29, "IQ1_M", 256, 56, tensor::dtype::f32, decode_iq1_m},
    gguf_type{30, "BF16", 1, 2, tensor::dtype::bf16},
    gguf_type{34, "TQ1_0", 256, 54, tensor::dtype::f32, decode_tq1_0},
    gguf_type{35, "TQ2_0", 256, 66, tensor::dtype::f32, decode_tq2_0},
    gguf_type{39, "MXFP4", 32, 17, tensor::dtype::bf16, decode_mxfp4},
    gguf_type{40, gguf_nvfp4, 64, 36, tensor::dtype::f32, decode_nvfp4},
    gguf_type{41, "Q1_0", 128, 18, tensor::dtype::f32, decode_q1_0},
};

/// The row of ggml's type `id`, nullptr when it is not in the list.
constexpr const gguf_type* find_gguf_type(std::uint32_t id) {
    for (const gguf_type& type : gguf_types) {
        if (type.id == id) return &type;
    }
    return nullptr;
}

}  // namespace mx::io
