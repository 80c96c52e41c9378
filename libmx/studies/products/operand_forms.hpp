// SPDX-License-Identifier: Apache-2.0
// The form of an operand that an accumulator model takes.
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

/// The form in which an operand is passed to a model.
struct operand_form {
    gemm::operand operand;
    std::string words;          ///< "e2m1 codes, e8m0 per 32", "bf16 values"
    std::uint64_t inexact = 0;  ///< dequantized values that the conversion changed
};
using form_pair = std::pair<operand_form, operand_form>;

/// Whether `model` takes the codes (and scales, if any) of both operands directly.
bool takes_codes(const gemm::accumulator& model, const quantized_operand& a,
                 const quantized_operand& b);
/// Whether it takes values without scales in one of float32, tf32, bf16 and f16.
bool takes_values(const gemm::accumulator& model);

/// Both operands in the form that `model` takes: codes if it takes both; otherwise dequantized to
/// float32 if it takes that, else to tf32, bf16 or f16 (f16 before bf16 if one operand is f16 and
/// none bf16). A model that rounds its inputs to bfloat16 gets bfloat16. Throws base::error (usage)
/// with the names of suitable models.
form_pair forms_for(const gemm::accumulator& model, const quantized_operand& a,
                    const quantized_operand& b);

/// The native model of the operands: the first hardware model in the list that takes the codes of
/// both, 4-bit units before others of the same chip. Without one, float32 sums of the values, as
/// bfloat16 unless both are f32.
const gemm::accumulator& native_model(const quantized_operand& a, const quantized_operand& b);

/// The first model of the list with this algorithm.
const gemm::accumulator& model_with(gemm::algorithm how);

/// The first `depth` elements along k; depth is a multiple of the scale block, or all of k.
gemm::operand first_of(const gemm::operand& x, std::size_t depth);

}  // namespace mx::products
