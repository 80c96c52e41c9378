// SPDX-License-Identifier: Apache-2.0
// What files of matrix instructions have in common: which model their metadata calls for, and
// their tensors as operands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libmx/conformance/verify/vector_file.hpp"
#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/operand.hpp"
#include "libmx/gemm/operand_formats.hpp"

namespace mx::conformance::verify {

/// What an instruction multiplies, by the metadata a_format, b_format, scale_format and
/// scale_block.
struct mma_operands {
    const gemm::operand_format* a = nullptr;
    const gemm::operand_format* b = nullptr;
    const gemm::operand_scale* scale = nullptr;  ///< nullptr: none
};
mma_operands mma_operands_of(const vector_file& file);

/// The facts by which a model is looked up, and those that it must then agree with.
struct mma_facts {
    mma_operands operands;
    bool f16_result = false;
    int instruction_k = 0;       ///< 0: not stated
    std::string conversion_key;  ///< metadata key of the conversion
    gemm::entry c = gemm::entry::term;
};

/// The row of the list for the file's architecture and instruction that takes such operands, its
/// steps no longer than the instruction. Throws base::error (input) when there is none, or when F,
/// the conversion or the exponent floor that the metadata states are not the row's.
gemm::accumulator mma_model_of(const vector_file& file, const mma_facts& facts);

/// The row for a recording, which states no parameters: of a chip ("sm_100") and an instruction in
/// the words of the metadata. None where nothing models the instruction on that chip.
std::optional<gemm::accumulator> captured_model_of(const std::string& architecture,
                                                   const std::string& instruction,
                                                   const mma_facts& facts);
std::optional<gemm::accumulator> captured_model_of(const vector_file& file, const mma_facts& facts);

/// The codes of `tensor` in the width that the format is stored in (U8, U16 or U32).
std::vector<std::uint32_t> mma_codes(const vector_file& file, const std::string& tensor,
                                     const gemm::operand_format& format);

/// Accumulators: U32 float32 bits, or U16 f16 bits.
std::vector<std::uint32_t> accumulator_bits(const vector_file& file, const std::string& tensor,
                                            bool f16, std::uint64_t count);

/// Throws base::error (usage) unless `model` gives f16 or float32 as the file's results are: of
/// use for models that did not come from the file.
void require_result(const vector_file& file, const gemm::accumulator& model, bool f16);

/// The metadata entry `key` as an integer from `low` to `high`.
int integer_of(const vector_file& file, std::string_view key, int low, int high);

}  // namespace mx::conformance::verify
