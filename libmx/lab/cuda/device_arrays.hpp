// SPDX-License-Identifier: Apache-2.0
// The arrays of a training run on a device, where they stay, and the work on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "libmx/base/cuda/device.hpp"
#include "libmx/codec/cuda/array_quantizer.hpp"
#include "libmx/lab/cuda/kernels.hpp"
#include "libmx/lab/cuda/watched_device.hpp"

namespace mx::lab::cuda {

/// Queue kernels on a stream of the device. Throw base::error (unavailable).
struct starters {
    void (*job)(const lab::job& what, std::uint64_t count, base::cuda::stream& on);
    void (*product)(const product_launch& l, base::cuda::stream& on);
};

/// Work is done in the order in which it is queued, but for products beside it; results are there
/// after fetch() or wait(). Used by one thread. Members throw base::error: unavailable if the
/// device fails, or out_of_memory.
class device_arrays {
  public:
    /// `on` must outlive it. Takes no memory before the first work.
    device_arrays(base::cuda::device& on, const starters& start,
                  const codec::cuda::array_starters& quantizing);
    ~device_arrays();

    watched_device& memory() { return device_; }
    /// Quantizes and rotates arrays, in the same order of work.
    codec::cuda::array_quantizer& quantizer() { return quantizer_; }

    void run(const job& what, std::uint64_t count);
    /// As lab::multiply.
    void multiply(const product_launch& l);
    /// The same at the same time as what is queued until join(), which writes nothing that the
    /// product reads, and reads nothing that it writes.
    void multiply_beside(const product_launch& l);
    /// What is queued from now on waits for such products.
    void join();

    void send(const void* here, std::size_t bytes, void* there);
    void fetch(const void* there, std::size_t bytes, void* here);
    void wait();
    /// Waits, whether what was queued fails or not.
    void settle() noexcept;

  private:
    watched_device device_;
    starters start_;
    base::cuda::lane lane_;
    std::unique_ptr<base::cuda::stream> beside_;
    bool joined_ = true;
    codec::cuda::array_quantizer quantizer_;
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
    std::byte* reserve(std::size_t bytes);
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
