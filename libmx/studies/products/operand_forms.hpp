// SPDX-License-Identifier: Apache-2.0
// Which form of an operand an accumulator model takes, and which model takes what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/operand.hpp"
#include "libmx/studies/products/quantized_operand.hpp"

namespace mx::products {

/// What of an operand is handed to a model.
struct operand_form {
    gemm::operand operand;
    std::string words;          ///< "e2m1 codes, e8m0 per 32", "bf16 values"
    std::uint64_t inexact = 0;  ///< dequantized values that the conversion changed
};
using form_pair = std::pair<operand_form, operand_form>;

/// Whether `model` takes the codes (and scales, where there are some) of both as they are.
bool takes_codes(const gemm::accumulator& model, const quantized_operand& a,
                 const quantized_operand& b);
/// Whether it takes values without scales in one of float32, tf32, bf16 and f16.
bool takes_values(const gemm::accumulator& model);

/// Both operands as `model` gets them: their codes where it takes both; otherwise dequantized, to
/// float32 where it takes that, else to tf32, bf16 or f16 (f16 before bf16 where one operand is
/// f16 and none bf16). A model that rounds to bfloat16 on entry gets bfloat16. Throws base::error
/// (usage) naming models that fit.
form_pair forms_for(const gemm::accumulator& model, const quantized_operand& a,
                    const quantized_operand& b);

/// The model that the operands are made for: the first of hardware in the list that takes the codes
/// of both, 4-bit units before others of their chip; without one float32 sums of the values, as
/// bfloat16 unless both are f32.
const gemm::accumulator& native_model(const quantized_operand& a, const quantized_operand& b);

/// The first model of the list that sums like this.
const gemm::accumulator& model_with(gemm::algorithm how);

/// The first `depth` elements along k: a multiple of the scale block, or all of them.
gemm::operand first_of(const gemm::operand& x, std::size_t depth);

}  // namespace mx::products
