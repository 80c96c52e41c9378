// SPDX-License-Identifier: Apache-2.0
// THE LIST of targets: where a model is to run, and the block formats that it supports.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mx::policy {

enum class support : std::uint8_t {
    native,    ///< instructions or kernels multiply it
    emulated,  ///< supported, dequantized before the product
    absent,
};

/// "native", "emulated", "absent".
std::string_view to_string(support s);

/// A block format on a target.
struct supported_format {
    std::string_view preset;
    support is;
    std::string_view recipe{};  ///< replaces a policy's recipe; empty: that one
    std::string_view note{};
};

/// Formats that `formats` does not name are absent; a target without formats is no specific one: it
/// rules nothing out, and has no native formats.
struct target {
    std::string_view name;
    std::string_view summary;
    std::string_view source;
    std::array<supported_format, 13> formats;

    constexpr bool any() const { return formats.front().preset.empty(); }
};

inline constexpr std::array targets{
    target{"any", "no target in particular", "", {}},
    target{
        "b200",
        "NVIDIA B200: tensor cores of the fifth generation",
        "PTX ISA, tcgen05.mma: .kind::mxf8f6f4, .kind::mxf4, .kind::mxf4nvf4",
        {{{"mxfp8", support::native},
          {"mxfp8_e5m2", support::native},
          {"mxfp6", support::native, "", "as fast as MXFP8: it saves memory only"},
          {"mxfp6_e3m2", support::native, "", "as fast as MXFP8: it saves memory only"},
          {"mxfp4", support::native},
          {"nvfp4", support::native},
          {"fp8_1x128", support::emulated, "", "scales are applied outside the tensor core"},
          {"fp8_128x128", support::emulated, "", "scales are applied outside the tensor core"}}}},
    target{"mi355x",
           "AMD Instinct MI355X: CDNA 4",
           "AMD CDNA 4 ISA, V_MFMA_SCALE_F32_16X16X128_F8F6F4; rocm.blogs.amd.com, Matrix Core "
           "Programming on AMD CDNA 3 and CDNA 4",
           {{{"mxfp8", support::native},
             {"mxfp8_e5m2", support::native},
             {"mxfp6", support::native, "", "as fast as MXFP4"},
             {"mxfp6_e3m2", support::native, "", "as fast as MXFP4"},
             {"mxfp4", support::native},
             {"fp8_1x128", support::emulated, "", "scales are applied outside the matrix core"},
             {"fp8_128x128", support::emulated, "", "scales are applied outside the matrix core"},
             {"nvfp4", support::absent, "", "scales are powers of two"}}}},
    target{
        "torchao",
        "PyTorch's torchao, on a B200",
        "pytorch/ao torchao/prototype/mx_formats",
        {{{"mxfp8", support::native},
          {"mxfp8_e5m2", support::emulated},
          {"mxfp6", support::emulated},
          {"mxfp6_e3m2", support::emulated},
          {"mxfp4", support::native},
          {"nvfp4", support::native, "", "both extents must be multiples of 16"},
          {"mxfp4_e3m0", support::absent, "", "it has no E3M0"},
          {"mxfp4_e1m2", support::absent, "", "it has no E1M2"},
          {"amdfp4", support::absent, "", "it has no UE5M3 scales"},
          {"mxint8", support::absent, "", "its MX formats have no integers"},
          {"mxint4", support::absent, "", "its MX formats have no integers"},
          {"fp8_1x128", support::absent, "", "its float8 configs scale per tensor or per row"},
          {"fp8_128x128", support::absent, "", "its float8 configs scale per tensor or per row"}}}},
    target{"compressed-tensors",
           "checkpoints of llm-compressor, as vLLM loads them",
           "vllm-project/compressed-tensors quantization/quant_scheme.py",
           {{{"mxfp8", support::native, "mxfp8:dialect=compressed-tensors",
              "its scales are even at one mantissa bit"},
             {"mxfp4", support::native, "mxfp4:scale=even"},
             {"nvfp4", support::native},
             {"fp8_128x128", support::native},
             {"mxfp8_e5m2", support::absent, "", "its 8-bit floats are E4M3"},
             {"mxfp6", support::absent, "", "it has no 6-bit floats"},
             {"mxfp6_e3m2", support::absent, "", "it has no 6-bit floats"},
             {"mxfp4_e3m0", support::absent, "", "its 4-bit floats are E2M1"},
             {"mxfp4_e1m2", support::absent, "", "its 4-bit floats are E2M1"},
             {"amdfp4", support::absent, "", "it has no UE5M3 scales"},
             {"mxint8", support::absent, "", "its integers have no power-of-two scales"},
             {"mxint4", support::absent, "", "its integers have no power-of-two scales"},
             {"fp8_1x128", support::absent, "", "rows of 128 are for activations there"}}}},
};

/// The target named `name`. Throws base::error (usage), naming the nearest.
const target& find_target(std::string_view name);

/// Whether any target supports the preset, natively or not.
bool supported_anywhere(std::string_view preset);

/// The preset's row; absent if there is none. `any` has every format emulated.
supported_format support_of(const target& t, std::string_view preset);

}  // namespace mx::policy
