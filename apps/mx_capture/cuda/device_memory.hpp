// SPDX-License-Identifier: Apache-2.0
// GPU memory with an owner, and checked calls.
#pragma once

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "libmx/base/status.hpp"

namespace mx::capture {

/// Throws base::error (unavailable) that names the failed operation, `what`.
inline void check(cudaError_t status, std::string_view what) {
    if (status == cudaSuccess) return;
    throw base::error(base::error_kind::unavailable,
                      fmt::format("{}: {}", what, cudaGetErrorString(status)));
}

/// Waits for all launched work.
inline void finish(std::string_view what) {
    check(cudaGetLastError(), what);
    check(cudaDeviceSynchronize(), what);
}

/// `count` elements, initially zero.
template <typename T>
class device_array {
  public:
    explicit device_array(std::size_t count) : count_(count) {
        void* at = nullptr;
        check(cudaMalloc(&at, bytes() == 0 ? 1 : bytes()), "memory of the card");
        at_ = static_cast<T*>(at);
        check(cudaMemset(at, 0, bytes()), "memory of the card");
    }
    explicit device_array(const std::vector<T>& values) : device_array(values.size()) {
        check(cudaMemcpy(at_, values.data(), bytes(), cudaMemcpyHostToDevice), "copy to the card");
    }
    ~device_array() { cudaFree(at_); }
    device_array(const device_array&) = delete;
    device_array& operator=(const device_array&) = delete;

    T* data() const { return at_; }
    std::size_t size() const { return count_; }
    std::vector<T> values() const {
        std::vector<T> copy(count_);
        check(cudaMemcpy(copy.data(), at_, bytes(), cudaMemcpyDeviceToHost), "copy from the card");
        return copy;
    }

  private:
    std::size_t bytes() const { return count_ * sizeof(T); }

    std::size_t count_;
    T* at_ = nullptr;
};

}  // namespace mx::capture
