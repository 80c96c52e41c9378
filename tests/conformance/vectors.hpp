// SPDX-License-Identifier: Apache-2.0
// Vector files of datasets/vectors, read through the library's own readers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mx::tests {

/// A vector file in memory: every tensor as float32 (U8 codes are exact there), C order.
struct vectors {
    std::map<std::string, std::vector<float>> tensor;
    std::map<std::string, std::uint64_t> last_axis;  ///< last extent of each tensor's shape
    std::map<std::string, std::string> metadata;

    std::vector<std::uint8_t> codes(const std::string& name) const;
};

/// Paths of all files of datasets/vectors/`folder`, sorted.
std::vector<std::string> vector_files(const std::string& folder);

/// Reads a file; throws what the reader throws.
vectors read_vectors(const std::string& path);

/// Splits at `separator`.
std::vector<std::string> split(const std::string& text, char separator);

/// The name of a file without folder and extension.
std::string stem(const std::string& path);

}  // namespace mx::tests
