// SPDX-License-Identifier: Apache-2.0
// Common to recordings and files of matrix instructions: their metadata, the model they require,
// and their tensors as operands.
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

/// Value of the metadata key "placement" if the operands were where the documentation says. Other
/// values describe the deviation, or say that no placement gave known products.
inline constexpr std::string_view documented_placement = "documented";
inline constexpr std::string_view no_placement = "none found";

/// Value of the metadata key "known_products" if small integers, which every matrix unit sums
/// exactly, gave the right results. For an instruction with only one placement, this distinguishes
/// misplaced operands from different arithmetic.
inline constexpr std::string_view known_products_given = "given";
inline constexpr std::string_view known_products_missed = "not given";

/// The reason for skipping a recording.
inline constexpr std::string_view no_model =
    "no accumulator model is for this instruction on this chip";
inline constexpr std::string_view not_placed =
    "the GPU did not read its operands where they were placed: the outputs say nothing about "
    "arithmetic";

/// Whether the operands were where the instruction reads them. Other recordings are no evidence
/// about arithmetic.
bool is_placed(const vector_file& file);

/// Whether mx_capture wrote the file.
bool is_recording(const vector_file& file);

/// Whether the inputs of a file are generated from its seed.
bool has_generated_inputs(const vector_file& file);

/// The seed. Throws base::error (input) unless the metadata names this program's generator version.
std::uint64_t generator_seed(const vector_file& file, std::string_view version);

/// A U32 tensor of n x 2 as 64-bit words, low half first.
std::vector<std::uint64_t> words64(const vector_file& file, const std::string& tensor,
                                   std::uint64_t count);

/// "0123456789abcdef".
std::string hash_text(std::uint64_t hash);

/// `a`, `b` and `scale` of an instruction's operands, from the metadata a_format, b_format,
/// scale_format and scale_block; other metadata is ignored.
vectors::mma_case mma_case_of(const vector_file& file);

/// The row of the list for the file's architecture and instruction that takes such operands with
/// this treatment of `c`, its steps no longer than the instruction. An instruction_k of 0 means not
/// stated. Throws base::error (input) if there is none, or if F, the exponent floor, or the
/// conversion in the metadata under `conversion_key` differ from the row's.
gemm::accumulator mma_model_of(const vector_file& file, const vectors::mma_case& what,
                               std::string_view conversion_key, gemm::entry c = gemm::entry::term);

/// The row for a recording, which contains no parameters: for a chip ("sm_100") and an instruction
/// as written in the metadata. nullopt if nothing models the instruction on that chip.
std::optional<gemm::accumulator> captured_model_of(const std::string& architecture,
                                                   const std::string& instruction,
                                                   const vectors::mma_case& what);
std::optional<gemm::accumulator> captured_model_of(const vector_file& file,
                                                   const vectors::mma_case& what);

/// The codes of `tensor`, stored as U8, U16 or U32 depending on the format's width.
std::vector<std::uint32_t> mma_codes(const vector_file& file, const std::string& tensor,
                                     const gemm::operand_format& format);

/// Throws base::error (usage) unless `model` gives f16 or float32 like the file's results. For
/// models that did not come from the file.
void require_result(const vector_file& file, const gemm::accumulator& model, bool f16);

/// The metadata entry `key` as an integer from `low` to `high`.
int integer_of(const vector_file& file, std::string_view key, int low, int high);
std::size_t size_of(const vector_file& file, std::string_view key, int low, int high);

/// One operand of many tiles: rows of codes along k, and their scales.
struct operand_stack {
    gemm::operand tile(std::size_t t) const;

    gemm::operand one;  ///< without values
    std::vector<std::uint32_t> codes;
    std::vector<std::uint8_t> scales = {};
};
/// Compares the outputs `d` of tiles, whose initial accumulator is `c`, with the model's.
void compare_tiles(const operand_stack& a, const operand_stack& b,
                   const std::vector<std::uint32_t>& c, const std::vector<std::uint32_t>& d,
                   const gemm::accumulator& model, comparison& found);

}  // namespace mx::conformance::verify
