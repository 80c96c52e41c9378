// SPDX-License-Identifier: Apache-2.0
// THE LIST of the names by which quantization_config states how codes are stored. mx lint reads
// them, and files for engines are written with them.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace mx::io {

struct stated_layout {
    std::string_view key, value;
    std::string_view layout;  ///< the beginning of a name in quantized/layouts.hpp
};

inline constexpr std::array stated_layouts{
    stated_layout{"format", "nvfp4-pack-quantized", "nvfp4"},
    stated_layout{"format", "mxfp4-pack-quantized", "mxfp4"},
    stated_layout{"format", "mxfp8-quantized", "mxfp8"},
    stated_layout{"format", "float-quantized", "fp8"},
    stated_layout{"format", "int-quantized", "int8"},
    stated_layout{"format", "pack-quantized", "pack-quantized"},
    stated_layout{"quant_algo", "NVFP4", "nvfp4"},
    stated_layout{"quant_algo", "FP8", "fp8"},
    stated_layout{"quant_algo", "FP8_PB_WO", "fp8"},
    stated_layout{"quant_algo", "FP8_PER_CHANNEL_PER_TOKEN", "fp8"},
    stated_layout{"quant_method", "fp8", "fp8"},
    stated_layout{"quant_method", "mxfp4", "mxfp4"},
    stated_layout{"quant_method", "gptq", "gptq"},
    stated_layout{"quant_method", "awq", "awq"},
    stated_layout{"quant_method", "bitsandbytes", "bnb"},
};

/// Whether a configuration can state this name under some key.
constexpr bool is_stated_layout(std::string_view value) {
    return std::ranges::any_of(stated_layouts,
                               [&](const stated_layout& s) { return s.value == value; });
}

}  // namespace mx::io
