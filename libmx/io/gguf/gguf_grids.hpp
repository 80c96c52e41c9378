// SPDX-License-Identifier: Apache-2.0
// The codebooks of ggml's IQ1, IQ2 and IQ3 types.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mx::io {

/// Points by their index in a block.
template <std::size_t points, std::size_t axes>
using gguf_grid = std::array<std::array<std::int8_t, axes>, points>;

extern const gguf_grid<256, 8> iq2_xxs_grid;
extern const gguf_grid<512, 8> iq2_xs_grid;
extern const gguf_grid<1024, 8> iq2_s_grid;
extern const gguf_grid<256, 4> iq3_xxs_grid;
extern const gguf_grid<512, 4> iq3_s_grid;
extern const gguf_grid<2048, 8> iq1_grid;  ///< of IQ1_S and IQ1_M

}  // namespace mx::io
