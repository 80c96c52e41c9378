// SPDX-License-Identifier: Apache-2.0
// What files that mx_capture writes have in common.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/pipeline/verify/vector_file.hpp"

namespace mx::pipeline {

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

}  // namespace mx::pipeline
