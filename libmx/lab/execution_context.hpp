// SPDX-License-Identifier: Apache-2.0
// Kernels, threads, per-thread quantizers and the device of a training run. None of them affects
// results.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "libmx/base/aligned.hpp"
#include "libmx/base/cuda/device.hpp"
#include "libmx/base/notices.hpp"
#include "libmx/codec/quantizer.hpp"
#include "libmx/lab/jobs.hpp"
#include "libmx/lab/simd/kernels.hpp"

namespace mx::lab {

namespace cuda {
class device_arrays;
}

/// The threads, kernels and device that compute one training run or evaluation at a time. With a
/// device, arrays (array.hpp) are in its memory and stay there, and what the device does not
/// compute is computed on the host, with copies.
class execution_context {
  public:
    /// `threads` as in base::thread_count; `backend` as in base::backend_named, "" selects the
    /// fastest of the CPU. `notices` (non-owning) is called if the device lacks memory and the CPU
    /// replaces it, and told what is computed on the host; null: lack of memory is an error.
    explicit execution_context(int threads = 1, std::string_view backend = {},
                               base::notices* notices = nullptr);
    /// With that device.
    execution_context(int threads, std::unique_ptr<cuda::device_arrays> device,
                      base::notices* notices);
    execution_context(execution_context&&) noexcept;
    ~execution_context();

    const simd::kernels& kernels() const { return *kernels_; }
    int threads() const { return threads_; }

    /// Runs a job over [0, count), by threads or on the device, where it is only queued.
    void run(const job& what, std::size_t count) const;

    /// Waits for what is queued.
    void wait() const;
    /// Ends what multiply_beside() began.
    void join() const;

    /// Calls body(begin, end, thread) for ranges that cover [0, count), on the host. The length of
    /// each but the last is a multiple of `grain`.
    void split(
        std::size_t count, std::size_t grain,
        const std::function<void(std::size_t begin, std::size_t end, int thread)>& body) const;

    codec::quantizer& quantizer(int thread);
    /// Null without a device: arrays are in memory of the host.
    cuda::device_arrays* device() const { return device_.get(); }
    /// The same without the device, for arrays of the host; itself if it has none.
    execution_context& host();
    /// Says what is computed on the host, with copies.
    void note_copies(std::string_view what) const;
    /// Continues without the device, which lacks memory. Throws `short_of` if there are no notices.
    /// Arrays on the device remain readable.
    void leave_device(const base::cuda::out_of_memory& short_of);
    /// Scratch memory of a product; its contents are undefined afterwards.
    base::aligned_buffer<float>& packed() { return packed_; }
    base::aligned_buffer<double>& packed_float64() { return packed_float64_; }

  private:
    const simd::kernels* kernels_;
    int threads_;
    std::vector<std::unique_ptr<codec::quantizer>> quantizers_;
    std::unique_ptr<cuda::device_arrays> device_, left_;
    std::unique_ptr<execution_context> host_;
    base::notices* notices_;
    base::aligned_buffer<float> packed_;
    base::aligned_buffer<double> packed_float64_;
};

}  // namespace mx::lab
