// SPDX-License-Identifier: Apache-2.0
// Counting of words (codec/word_counts.hpp) on a device. Its counters stay there until the counts
// are settled. Blocks are copied in slices, two of which are in flight. The host counts the first
// blocks, so that classes of maxima are known, and blocks that a pass leaves out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "libmx/base/cuda/device.hpp"
#include "libmx/base/notices.hpp"
#include "libmx/codec/cuda/word_kernels.hpp"
#include "libmx/codec/word_counts.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::codec::cuda {

/// Queue kernels on a stream of the device. Throw base::error (unavailable), or no_room if memory
/// is short.
struct word_queue {
    void (*count)(const word_launch& l, base::cuda::stream& on);
    void (*clear)(std::uint32_t* words, std::uint32_t count, base::cuda::stream& on);
};

struct word_limits {
    std::size_t slice = std::size_t{1} << 20;     ///< words of a slice, at least one block
    std::size_t counters = std::size_t{1} << 21;  ///< on the device: 8 MiB
    std::size_t first = std::size_t{1} << 16;     ///< words that the host counts before a device
};

/// Of values of the type, bf16 or f16. `on` must outlive it; nothing is allocated there before
/// blocks are counted. `host` counts the other blocks, and all of them once the device is out of
/// memory: `notices` receives that, without notices it is an error.
std::unique_ptr<word_device> make_word_device(base::cuda::device& on, const word_queue& by,
                                              tensor::dtype type, word_pass host,
                                              base::notices* notices,
                                              const word_limits& limits = {});

}  // namespace mx::codec::cuda
