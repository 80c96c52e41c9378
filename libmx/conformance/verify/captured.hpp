// SPDX-License-Identifier: Apache-2.0
// What files that mx_capture writes have in common.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/conformance/verify/vector_file.hpp"

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
    "the card did not read its operands where they were: the outputs say nothing of arithmetic";

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

}  // namespace mx::conformance::verify
