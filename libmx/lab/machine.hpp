// SPDX-License-Identifier: Apache-2.0
// Kernels, threads and per-thread quantizers of a training run. None of them affects results.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "libmx/base/aligned.hpp"
#include "libmx/codec/quantizer.hpp"
#include "libmx/lab/simd/kernels.hpp"

namespace mx::lab {

/// Used by one training run at a time.
class machine {
  public:
    /// `threads` as in base::thread_count; `backend` as in simd::named, "" selects the fastest.
    explicit machine(int threads = 1, std::string_view backend = {});

    const simd::kernels& kernels() const { return *kernels_; }
    int threads() const { return threads_; }

    /// Calls body(begin, end, thread) for ranges that cover [0, count). The length of each but the
    /// last is a multiple of `grain`.
    void split(
        std::size_t count, std::size_t grain,
        const std::function<void(std::size_t begin, std::size_t end, int thread)>& body) const;

    codec::quantizer& quantizer(int thread);
    /// Scratch memory of a product; its contents are undefined afterwards.
    base::aligned_buffer<float>& packed() { return packed_; }

  private:
    const simd::kernels* kernels_;
    int threads_;
    std::vector<std::unique_ptr<codec::quantizer>> quantizers_;
    base::aligned_buffer<float> packed_;
};

}  // namespace mx::lab
