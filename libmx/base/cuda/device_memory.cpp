// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/cuda/device_memory.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include "libmx/base/status.hpp"

namespace mx::base::cuda {

void check(int code, const char* what) {
    if (code == cudaSuccess) return;
    const auto status = static_cast<cudaError_t>(code);
    cudaGetLastError();  // else the next call would report this one
    const char* const advice =
        status == cudaErrorMemoryAllocation
            ? "the card has no room; choose fewer --threads, or leave out --backend cuda"
            : "leave out --backend cuda to do without the card";
    throw base::error(
        base::error_kind::unavailable,
        fmt::format("backend cuda: {}: {}; {}", what, cudaGetErrorString(status), advice));
}

std::string obstacle(int (*has_code)()) {
    // The runtime calls a driver that is not there too old.
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) return "no NVIDIA driver";
    int count = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count == 0) {
        cudaGetLastError();
        return fmt::format("no device ({})",
                           code != cudaSuccess ? cudaGetErrorString(code) : "none is listed");
    }
    code = static_cast<cudaError_t>(has_code());
    if (code == cudaSuccess) return {};
    cudaGetLastError();
    cudaDeviceProp device{};
    cudaGetDeviceProperties(&device, 0);
    return fmt::format("no kernels for {} ({})", device.name, cudaGetErrorString(code));
}

std::byte* grown_memory::room_for(std::size_t bytes) {
    if (bytes <= size_) return data_;
    release();
    void* memory = nullptr;
    if (where_ == where::device) {
        check(cudaMalloc(&memory, bytes), "taking memory of the card");
    } else {
        check(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault), "taking pinned memory");
    }
    data_ = static_cast<std::byte*>(memory);
    size_ = bytes;
    return data_;
}

void grown_memory::release() noexcept {
    // At the end of the program the runtime may be gone, and its memory with it.
    if (data_ == nullptr) return;
    if (where_ == where::device) {
        cudaFree(data_);
    } else {
        cudaFreeHost(data_);
    }
    data_ = nullptr;
    size_ = 0;
}

stream::stream() {
    cudaStream_t s = nullptr;
    check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "making a stream");
    handle_ = s;
}

stream::~stream() { cudaStreamDestroy(static_cast<cudaStream_t>(handle_)); }

void stream::copy_there(std::byte* device, const std::byte* host, std::size_t bytes) {
    check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice,
                          static_cast<cudaStream_t>(handle_)),
          "copying to the card");
}

void stream::copy_back(std::byte* host, const std::byte* device, std::size_t bytes) {
    check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost,
                          static_cast<cudaStream_t>(handle_)),
          "copying from the card");
}

void stream::wait() {
    check(cudaStreamSynchronize(static_cast<cudaStream_t>(handle_)), "running the kernel");
}

}  // namespace mx::base::cuda
