// SPDX-License-Identifier: Apache-2.0
// Quantizes arrays that are on a device. Results stay there.
#pragma once

#include <cstdint>

#include "libmx/base/cuda/device.hpp"
#include "libmx/block/segment_stats.hpp"
#include "libmx/block/view.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/cuda/array_work.hpp"
#include "libmx/codec/cuda/element_stream.hpp"
#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/transform/rotation.hpp"

namespace mx::codec::cuda {

/// Queue kernels on a stream of the device. Throw base::error (unavailable).
struct array_starters {
    void (*segments)(const launch& l, base::cuda::stream& on);
    element_starter elements;
    void (*work)(const array_work& what, base::cuda::stream& on);
};

/// Where results go. Null: not wanted.
struct array_results {
    device_numbers values{};
    std::uint64_t row_step = 0, col_step = 0;  ///< of values
    std::uint8_t* codes = nullptr;             ///< one to a byte
    std::uint8_t* scale_codes = nullptr;       ///< in the order of the grid
    std::uint16_t* offsets = nullptr;          ///< the same
    block::segment_stats* stats = nullptr;     ///< of the host; everything is added to it
};

/// Packed codes, scales and offsets of an array.
struct packed_array {
    std::uint8_t *codes, *scale_codes;
    std::uint16_t* offsets;  ///< null without
};

/// Work is queued on the stream of a lane and done in its order. Used by one thread. Members throw
/// base::error: unavailable if the device fails, or out_of_memory.
class array_quantizer {
  public:
    /// What a launch leaves for itself is a few bytes an element, and places fit 32 bits.
    static constexpr std::uint64_t usual_launch = std::uint64_t{1} << 23;

    /// Both must outlive it. Uses the memory of `on`, and allocates nothing before the first work.
    /// A launch has at most `elements` elements, or a row of segments.
    array_quantizer(base::cuda::device& memory, base::cuda::lane& on, const array_starters& start,
                    std::uint64_t elements = usual_launch)
        : memory_(memory),
          aligned_(memory, base::cuda::memory_kind::device),
          on_(on),
          start_(start),
          elements_(elements) {}

    base::cuda::device& memory() { return memory_; }
    base::cuda::stream& work() { return on_.work(); }
    void start(const array_work& what) { start_.work(what, work()); }

    /// Quantizes with the bytes of every backend. The parameters must have no outer scales of
    /// areas. `x` may be where values go. Waits if stats are wanted.
    void quantize(const block_params& p, const block::grid& g, std::uint64_t tensor_id,
                  device_numbers x, const array_results& to);

    /// The values of an array under `p`, whose scales have codes. `bits` is the element's.
    void dequantize(const block_params& p, const block::grid& g, int bits, const packed_array& from,
                    device_numbers to);

    /// Casts `count` numbers to values in float32.
    void cast(const element_cast& to, const base::random_key& key, device_numbers x,
              std::uint64_t count, float* values);

    /// As transform::rotate of rows x cols numbers, or with `back` as rotate_back; not by a matrix
    /// from a file.
    void rotate(const transform::rotation& r, float* x, std::uint64_t rows, std::uint64_t cols,
                transform::run along, bool back);

    /// The bits of the largest finite magnitude. Waits.
    std::uint32_t finite_amax(device_numbers x, std::uint64_t count);

  private:
    // Whole matrices of the stack, or whole rows of segments of one, or segments of a row.
    struct part {
        std::uint64_t row, rows;  // of the stack
        std::uint64_t matrix_rows;
        std::uint64_t col, cols;
    };
    static stacked_blocks stacked(const part& of, const block::grid& g);
    template <typename Each>
    void for_each_part(const block::grid& g, const Each& each) const;
    void quantize_part(const block_params& p, const block::grid& g, const part& of,
                       std::uint64_t tensor_id, device_numbers x, const array_results& to);
    std::byte* room(base::cuda::held_memory& in, std::size_t bytes);

    base::cuda::device& memory_;
    base::cuda::held_memory aligned_;
    base::cuda::lane& on_;
    array_starters start_;
    std::uint64_t elements_;  // of a launch
};

}  // namespace mx::codec::cuda
