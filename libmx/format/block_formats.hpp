// SPDX-License-Identifier: Apache-2.0
// THE LIST of block formats: the presets of recipe strings.
#pragma once

#include <array>
#include <string_view>

namespace mx::format {

/// An element format, a scale format and a default block under one name.
struct block_format {
    std::string_view name;
    std::string_view alias;  ///< a second spelling, "" if there is none
    std::string_view element;
    std::string_view scale;
    int block_rows;
    int block_cols;
    std::string_view summary;
    std::string_view rule{};  ///< default scale rule if it is not the scale format's
};

inline constexpr std::array block_formats{
    block_format{"mxfp8", "mxfp8_e4m3", "e4m3", "e8m0", 1, 32, "OCP MXFP8, E4M3"},
    block_format{"mxfp8_e5m2", "", "e5m2", "e8m0", 1, 32, "OCP MXFP8, E5M2"},
    block_format{"mxfp6", "mxfp6_e2m3", "e2m3", "e8m0", 1, 32, "OCP MXFP6, E2M3"},
    block_format{"mxfp6_e3m2", "", "e3m2", "e8m0", 1, 32, "OCP MXFP6, E3M2"},
    block_format{"mxfp4", "mxfp4_e2m1", "e2m1", "e8m0", 1, 32, "OCP MXFP4, E2M1"},
    block_format{"mxfp4_e3m0", "", "e3m0", "e8m0", 1, 32, "power-of-two FP4"},
    block_format{"mxfp4_e1m2", "", "e1m2", "e8m0", 1, 32, "uniform FP4"},
    block_format{"mxint8", "", "int8", "e8m0", 1, 32, "OCP MXINT8"},
    block_format{"mxint4", "", "int4", "e8m0", 1, 32, "4-bit integers"},
    block_format{"nvfp4", "", "e2m1", "ue4m3", 1, 16, "NVIDIA NVFP4, under a tensor scale"},
    block_format{"amdfp4", "", "e2m1", "ue5m3", 1, 16,
                 "AMD's AMDFP4: NVFP4's elements, no tensor scale", "single-level"},
    block_format{"fp8_1x128", "", "e4m3", "f32", 1, 128, "FP8 block scaling, rows (activations)"},
    block_format{"fp8_128x128", "", "e4m3", "f32", 128, 128, "FP8 block scaling, tiles (weights)"},
};

/// The preset named (or also named) `name`, or nullptr.
constexpr const block_format* find_block_format(std::string_view name) {
    for (const block_format& f : block_formats) {
        if (f.name == name || (!f.alias.empty() && f.alias == name)) return &f;
    }
    return nullptr;
}

}  // namespace mx::format
