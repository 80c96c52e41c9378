// SPDX-License-Identifier: Apache-2.0
// The arrays of a training run on a device, where they stay, and the work on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "libmx/base/cuda/device.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/cuda/matrix_values.hpp"
#include "libmx/lab/cuda/kernels.hpp"
#include "libmx/transform/rotation.hpp"

namespace mx::lab::cuda {

/// Queue kernels on a stream of the device. Throw base::error (unavailable).
struct starters {
    void (*job)(const lab::job& what, std::uint64_t count, base::cuda::stream& on);
    void (*product)(const product_launch& l, base::cuda::stream& on);
    void (*segments)(const codec::cuda::launch& l, base::cuda::stream& on);
    void (*values)(const codec::cuda::matrix_values& m, base::cuda::stream& on);
    void (*rotation)(const rotation_launch& l, base::cuda::stream& on);
};

/// A matrix to quantize and where its values go.
struct quantized_matrix {
    const float* x;
    std::uint64_t rows, cols;
    std::uint64_t tensor;                  ///< of random draws
    std::uint64_t block_rows, block_cols;  ///< at most the extents of the matrix
    float* to;
    bool transposed;  ///< `to` is cols x rows
};

/// Work is queued on one stream and done in its order; results are there after fetch() or wait().
/// Used by one thread. Members throw base::error: unavailable if the device fails, or no_room.
class device_arrays {
  public:
    /// `on` must outlive it. Takes no memory before the first work.
    device_arrays(base::cuda::device& on, const starters& start);

    base::cuda::device& memory() { return device_; }

    void run(const job& what, std::uint64_t count);
    /// As lab::multiply.
    void multiply(const product_launch& l);
    /// Quantizes with the bytes of every backend. The parameters must have no outer scales of
    /// areas.
    void quantize(const codec::block_params& p, const quantized_matrix& m);

    /// As transform::rotate of rows x cols numbers, or with `back` as rotate_back; not by a matrix
    /// from a file.
    void rotate(const transform::rotation& r, float* x, std::uint64_t rows, std::uint64_t cols,
                transform::run along, bool back);

    void send(const void* here, std::size_t bytes, void* there);
    void fetch(const void* there, std::size_t bytes, void* here);
    void wait();
    /// Waits, whether what was queued fails or not.
    void settle() noexcept;

  private:
    std::byte* staged(std::size_t bytes);

    base::cuda::device& device_;
    starters start_;
    base::cuda::held_memory aligned_, work_;
    std::size_t used_ = 0;  // of the pinned memory, by copies that may not be done
    base::cuda::lane lane_;
};

/// Memory on a device, freed when no queued work can use it any more.
class device_memory {
  public:
    device_memory() = default;
    explicit device_memory(device_arrays& of) : by_(&of) {}
    device_memory(device_memory&& other) noexcept;
    device_memory& operator=(device_memory&& other) noexcept;
    ~device_memory() { release(); }

    bool is_of(const device_arrays& by) const { return by_ == &by; }
    /// Keeps the contents only if it was large enough. `bytes` may be 0.
    std::byte* room_for(std::size_t bytes);
    /// Whether there was any.
    bool release() noexcept;

  private:
    device_arrays* by_ = nullptr;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

/// On the first CUDA device. In a build without CUDA, throws base::error (unavailable).
std::unique_ptr<device_arrays> make_arrays();

}  // namespace mx::lab::cuda
