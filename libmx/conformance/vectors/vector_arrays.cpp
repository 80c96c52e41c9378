// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/vectors/vector_arrays.hpp"

#include "libmx/base/bits.hpp"
#include "libmx/codec/tensor_scale.hpp"

namespace mx::conformance::vectors {
namespace {

using tensor::dtype;

template <typename T>
std::vector<std::uint32_t> words_of(const std::vector<T>& values) {
    return {values.begin(), values.end()};
}

// The dialects that store what multiplies before encoding, not what multiplies after decoding.
bool stores_encode_scale(const codec::recipe& r) {
    const codec::two_level_kind kind = r.by->two_level.value;
    return kind == codec::two_level_kind::te || kind == codec::two_level_kind::compressed_tensors;
}

std::vector<vector_array> arrays(const codec::recipe& r, std::span<const float> input,
                                 const conformance::vectors::block_vectors& made) {
    const std::size_t n = conformance::vectors::elements_of_block(r);
    std::vector<std::uint32_t> x;
    for (const float value : input) x.push_back(base::bits_of(value));
    std::vector<vector_array> all{{"input", "input", dtype::f32, 32, n, false,
                                   "float32 words to be quantized", std::move(x)}};
    if (codec::scales_have_codes(r)) {
        all.push_back({"scale_code", "scale", dtype::u8, 8, 1, true, "scale codes",
                       words_of(made.scale_code)});
    } else {
        all.push_back({"scale", "scale", dtype::f32, 32, 1, true, "float32 scales", made.scale});
    }
    if (r.offset != codec::offset_kind::none) {
        all.push_back({"offset", "offset", dtype::f16, 16, 1, true, "binary16 offsets",
                       words_of(made.offset)});
    }
    if (codec::needs_tensor_facts(r)) {
        all.push_back({stores_encode_scale(r) ? "global_encode_scale" : "per_tensor_scale",
                       "tensor_scale",
                       dtype::f32,
                       32,
                       0,
                       true,
                       "float32 scale that all blocks share",
                       {made.tensor_scale.value_or(0)}});
    }
    all.push_back({"code", "codes", dtype::u8, r.element->bits(), n, true, "element codes",
                   words_of(made.code)});
    all.push_back({"dequant", "dequant", dtype::f32, 32, n, true, "float32 dequantized values",
                   made.dequant});
    return all;
}

}  // namespace

std::vector<vector_array> arrays_of(const codec::recipe& r) { return arrays(r, {}, {}); }

std::vector<vector_array> arrays_of(const codec::recipe& r, std::span<const float> input,
                                    const conformance::vectors::block_vectors& made) {
    return arrays(r, input, made);
}

}  // namespace mx::conformance::vectors
