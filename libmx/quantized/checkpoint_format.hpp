// SPDX-License-Identifier: Apache-2.0
// Facts of a quantized checkpoint that only its configuration states.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace mx::io {

struct checkpoint_config {
    std::string format;  ///< checkpoint_format, as GPTQModel writes it ("gptq", "gptq_v2", ...)
    /// Rows and columns of tiles: weight_block_size (DeepSeek, ...), block_structure
    /// (compressed-tensors).
    std::vector<std::array<std::uint64_t, 2>> tiles;
};

/// The facts in quantize_config.json in the folder of `path`, and in `quantization_config` (or
/// `compression_config`) of config.json there, or of its text_config; the former take precedence.
/// Without members for what neither states; a file that is not readable as JSON counts as missing.
checkpoint_config config_beside(const std::string& path);

}  // namespace mx::io
