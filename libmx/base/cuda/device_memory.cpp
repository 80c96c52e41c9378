// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/cuda/device_memory.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include "libmx/base/cuda/pooled_device.hpp"

namespace mx::base::cuda {
namespace {

class runtime_stream final : public stream {
  public:
    runtime_stream() {
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
    }
    // At the end of the program the runtime may be gone, and its streams and memory with it: what
    // it says here, and in give_back, does not matter.
    ~runtime_stream() override {
        cudaStreamSynchronize(stream_);
        cudaStreamDestroy(stream_);
        cudaGetLastError();
    }

    void copy_there(std::byte* device, const std::byte* host, std::size_t bytes) override {
        check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_),
              "copying to the card");
    }
    void copy_back(std::byte* host, const std::byte* device, std::size_t bytes) override {
        check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_),
              "copying from the card");
    }
    void wait() override { check(cudaStreamSynchronize(stream_), "running the kernel"); }
    void* handle() override { return stream_; }

  private:
    cudaStream_t stream_ = nullptr;
};

// Every thread of the host begins with the first device, and all share its context.
class runtime_device final : public device {
  public:
    std::byte* take(memory_kind kind, std::size_t bytes) override {
        void* memory = nullptr;
        const cudaError_t code = kind == memory_kind::device
                                     ? cudaMalloc(&memory, bytes)
                                     : cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
        if (code == cudaErrorMemoryAllocation) {
            cudaGetLastError();  // else the next kernel would be said to have failed
            throw no_room(shortage_of(kind, bytes, room()));
        }
        check(code,
              kind == memory_kind::device ? "taking memory of the card" : "taking pinned memory");
        return static_cast<std::byte*>(memory);
    }
    void give_back(memory_kind kind, std::byte* memory, std::size_t) noexcept override {
        if (kind == memory_kind::device) {
            cudaFree(memory);
        } else {
            cudaFreeHost(memory);
        }
        cudaGetLastError();
    }
    std::unique_ptr<stream> make_stream() override { return std::make_unique<runtime_stream>(); }
    memory_room room() noexcept override {
        std::size_t free = 0, all = 0;
        if (cudaMemGetInfo(&free, &all) == cudaSuccess) return {free, all};
        cudaGetLastError();
        return {};
    }
};

}  // namespace

void check(int code, const char* what) {
    if (code == cudaSuccess) return;
    const auto status = static_cast<cudaError_t>(code);
    cudaGetLastError();  // else the next call would report this one
    if (status == cudaErrorMemoryAllocation) {
        throw no_room(fmt::format("the card has no room ({})", what));
    }
    throw error(error_kind::unavailable,
                fmt::format("backend cuda: {}: {}; leave out --backend cuda to do without the card",
                            what, cudaGetErrorString(status)));
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
    if (code == cudaErrorMemoryAllocation) return {};
    cudaDeviceProp device{};
    cudaGetDeviceProperties(&device, 0);
    return fmt::format("{} cannot run the kernels ({})", device.name, cudaGetErrorString(code));
}

device& first_device() {
    static runtime_device runtime;
    static pooled_device pool(runtime);
    return pool;
}

}  // namespace mx::base::cuda
