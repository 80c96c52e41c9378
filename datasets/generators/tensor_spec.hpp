// SPDX-License-Identifier: Apache-2.0
// What one synthetic tensor is: everything its bytes depend on besides the seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/generators/laws.hpp"
#include "libmx/tensor/dtypes.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::synth {

enum class content : std::uint8_t {
    random,       ///< centre + row factor * column factor * scale * draw from a law
    causal_mask,  ///< BOOL, last two axes: 1 where column <= row
    positions,    ///< I64: the element's index
    frequencies,  ///< F32: 10000^(-i/n), rotary position frequencies
};

/// Columns (channels of the last axis) that are larger than the others, as transformers have.
struct outlier_columns {
    std::string key;      ///< tensors with one key and one width share their outlier columns
    double share = 0.0;   ///< of the columns; at least one when positive
    double factor = 1.0;  ///< typical magnification; each column's own is 0.5 to 1.5 times it
};

struct tensor_spec {
    std::string name;
    tensor::dtype type = tensor::dtype::bf16;
    tensor::shape shape;
    content kind = content::random;
    law draw = law::normal;
    double centre = 0.0;
    double scale = 1.0;
    double row_spread = 0.0;      ///< row factors are exp(row_spread * normal); 0: all 1
    std::uint64_t zero_rows = 0;  ///< leading rows that are zero (a padding token)
    outlier_columns outliers;
};

/// Bytes of the tensor's data. The shape's element count must fit 2^62 bytes.
std::uint64_t byte_count(const tensor_spec& spec);

}  // namespace mx::synth
