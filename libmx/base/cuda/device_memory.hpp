// SPDX-License-Identifier: Apache-2.0
// What is taken from CUDA's runtime and given back: memory of the card and of the host, a stream.
#pragma once

#include <cstddef>
#include <string>

namespace mx::base::cuda {

/// Throws base::error (unavailable) unless `code`, a cudaError_t, is success: what was done, what
/// the runtime says, what to do.
void check(int code, const char* what);

/// Why the first device cannot run kernels, empty when it can. `has_code` returns the runtime's
/// error code for one of them. Starts the runtime.
std::string obstacle(int (*has_code)());

/// Memory that grows; growing loses the contents.
class grown_memory {
  public:
    enum class where { device, pinned_host };
    explicit grown_memory(where w) : where_(w) {}
    grown_memory(const grown_memory&) = delete;
    grown_memory& operator=(const grown_memory&) = delete;
    ~grown_memory() { release(); }

    std::byte* room_for(std::size_t bytes);
    std::byte* data() const { return data_; }

  private:
    void release() noexcept;
    where where_;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

/// A stream that waits for no other one.
class stream {
  public:
    stream();
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;
    ~stream();

    void copy_there(std::byte* device, const std::byte* host, std::size_t bytes);
    void copy_back(std::byte* host, const std::byte* device, std::size_t bytes);
    void wait();
    void* handle() const { return handle_; }

  private:
    void* handle_ = nullptr;
};

}  // namespace mx::base::cuda
