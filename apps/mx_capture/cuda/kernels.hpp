// SPDX-License-Identifier: Apache-2.0
// Kernels, named by the PTX that they issue; the same text is assembled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "apps/mx_capture/placements.hpp"

namespace mx::capture {

/// Tiles on the device in the layout of packed_slices and packed_scales, one after the other.
struct mma_batch {
    const std::uint32_t* a = nullptr;    ///< tiles x steps x 16 rows x 8 words
    const std::uint32_t* b = nullptr;    ///< tiles x steps x 8 rows x 8 words
    const std::uint32_t* sfa = nullptr;  ///< tiles x steps x 16
    const std::uint32_t* sfb = nullptr;  ///< tiles x steps x 8
    const std::uint32_t* c = nullptr;    ///< tiles x 16 x 8, a word each
    std::uint32_t* d = nullptr;          ///< the same
    int* failed = nullptr;               ///< set if a wait timed out
    int tiles = 0, steps = 0;
    std::uint32_t descriptor = 0;  ///< tcgen05
    bool accumulate = true;        ///< whether the first step reads c
    bool f16 = false;              ///< accumulators
    placement where;               ///< of the operands; the host lays out the codes
};

struct mma_kernel {
    std::string_view ptx;
    void (*launch)(const mma_batch& batch);
};
std::span<const mma_kernel> mma_sync_kernels();
std::span<const mma_kernel> mma_sync_fp8_kernels();
std::span<const mma_kernel> mma_sync_scaled_kernels();
std::span<const mma_kernel> wgmma_kernels();
std::span<const mma_kernel> tcgen05_kernels();

struct narrow_kernel {
    std::string_view ptx;
    /// Codes of an even number of words.
    void (*convert)(const std::uint32_t* words, std::uint8_t* codes, std::size_t count);
    /// Adds the result of device::hash_cells to hash[cell].
    void (*hash)(std::uint64_t* hash, std::uint32_t stride);
};
std::span<const narrow_kernel> fp8_narrow_kernels();
std::span<const narrow_kernel> narrow_kernels();

struct widen_kernel {
    std::string_view ptx;
    /// Values of the codes 0 to count - 1, an even number.
    void (*convert)(std::uint16_t* values, std::size_t count);
};
std::span<const widen_kernel> fp8_widen_kernels();
std::span<const widen_kernel> widen_kernels();

struct stochastic_kernel {
    std::string_view ptx;
    /// `inputs`: four values, lowest part of the result first, and the random word.
    void (*convert)(const std::uint32_t* inputs, std::uint32_t* results, std::size_t count);
};
std::span<const stochastic_kernel> stochastic_kernels();

}  // namespace mx::capture
