// SPDX-License-Identifier: Apache-2.0
// What recordings and files of matrix instructions have in common: what their metadata says, which
// model it calls for, and their tensors as operands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/conformance/vectors/mma_inputs.hpp"
#include "libmx/conformance/verify/comparison.hpp"
#include "libmx/conformance/verify/vector_file.hpp"
#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/operand.hpp"
#include "libmx/gemm/operand_formats.hpp"

namespace mx::conformance::verify {

/// What a recording's metadata says under "placement" of where its operands were: as documented, or
/// nowhere that gave known products. Anything else is what deviated.
inline constexpr std::string_view documented_placement = "documented";
inline constexpr std::string_view no_placement = "none found";

/// What they say under "known_products": whether small whole numbers, which every matrix unit adds
/// up exactly, came out. Where an instruction has one placement only, this tells operands that were
/// read elsewhere from arithmetic that is another.
inline constexpr std::string_view known_products_given = "given";
inline constexpr std::string_view known_products_missed = "not given";

/// Why a recording is skipped.
inline constexpr std::string_view no_model =
    "no accumulator model is for this instruction on this chip";
inline constexpr std::string_view not_placed =
    "the GPU did not read its operands where they were placed: the outputs say nothing about "
    "arithmetic";

/// Whether it was found where the instruction reads its operands. Others say nothing of arithmetic.
bool is_placed(const vector_file& file);

/// Whether mx_capture wrote the file.
bool is_recording(const vector_file& file);

/// Whether the inputs of a file are to be made from its seed.
bool has_generated_inputs(const vector_file& file);

/// The seed, once the metadata names the version of the generator that this program has.
std::uint64_t generator_seed(const vector_file& file, std::string_view version);

/// A U32 tensor of n x 2 as 64-bit words, low half first.
std::vector<std::uint64_t> words64(const vector_file& file, const std::string& tensor,
                                   std::uint64_t count);

/// "0123456789abcdef".
std::string hash_text(std::uint64_t hash);

/// `a`, `b` and `scale` of what an instruction multiplies, by the metadata a_format, b_format,
/// scale_format and scale_block; the rest is not looked at.
vectors::mma_case mma_case_of(const vector_file& file);

/// The row of the list for the file's architecture and instruction that takes such operands with
/// `c` entering so, its steps no longer than the instruction. Throws base::error (input) when there
/// is none, or when F, the exponent floor, or the conversion that the metadata states under
/// `conversion_key` are not the row's. An instruction_k of 0: not stated.
gemm::accumulator mma_model_of(const vector_file& file, const vectors::mma_case& what,
                               std::string_view conversion_key, gemm::entry c = gemm::entry::term);

/// The row for a recording, which states no parameters: of a chip ("sm_100") and an instruction in
/// the words of the metadata. None where nothing models the instruction on that chip.
std::optional<gemm::accumulator> captured_model_of(const std::string& architecture,
                                                   const std::string& instruction,
                                                   const vectors::mma_case& what);
std::optional<gemm::accumulator> captured_model_of(const vector_file& file,
                                                   const vectors::mma_case& what);

/// The codes of `tensor` in the width that the format is stored in (U8, U16 or U32).
std::vector<std::uint32_t> mma_codes(const vector_file& file, const std::string& tensor,
                                     const gemm::operand_format& format);

/// Throws base::error (usage) unless `model` gives f16 or float32 as the file's results are: of
/// use for models that did not come from the file.
void require_result(const vector_file& file, const gemm::accumulator& model, bool f16);

/// The metadata entry `key` as an integer from `low` to `high`.
int integer_of(const vector_file& file, std::string_view key, int low, int high);
std::size_t size_of(const vector_file& file, std::string_view key, int low, int high);

/// Rows of codes along k, and what scales them, of many tiles: one operand of all.
struct operand_stack {
    gemm::operand tile(std::size_t t) const;

    gemm::operand one;  ///< without values
    std::vector<std::uint32_t> codes;
    std::vector<std::uint8_t> scales = {};
};
/// Compares the outputs `d` of tiles, which began with `c`, with the model's.
void compare_tiles(const operand_stack& a, const operand_stack& b,
                   const std::vector<std::uint32_t>& c, const std::vector<std::uint32_t>& d,
                   const gemm::accumulator& model, comparison& found);

}  // namespace mx::conformance::verify
