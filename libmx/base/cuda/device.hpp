// SPDX-License-Identifier: Apache-2.0
// What is taken of a device and given back: memory of its own, memory of the host that it copies
// from and to by itself, queues of work. CUDA's runtime has one (device_memory.hpp); the host can
// stand in for one (tests/host_device), so that what works on a device can be watched without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "libmx/base/status.hpp"

namespace mx::base::cuda {

enum class memory_kind : std::uint8_t {
    device,
    pinned,  ///< of the host, never paged out, so that copies go on while the host works
};

/// Bytes of the device.
struct memory_room {
    std::uint64_t free = 0, all = 0;
};

/// The device has no room, or the host no pinned memory: who asked may be content with less, or go
/// elsewhere. All other failures of a device are plain base::error.
class no_room : public error {
  public:
    /// `shortage`: what is short, as the middle of a sentence.
    explicit no_room(const std::string& shortage);
    const std::string& shortage() const noexcept { return shortage_; }

  private:
    std::string shortage_;
};

/// Copies and kernels that follow one another, while those of other streams are under way. Copies
/// are from and to pinned memory, which has to stay as it is until wait() is back.
class stream {
  public:
    stream() = default;
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;
    virtual ~stream() = default;  ///< waits

    virtual void copy_there(std::byte* device, const std::byte* host, std::size_t bytes) = 0;
    virtual void copy_back(std::byte* host, const std::byte* device, std::size_t bytes) = 0;
    /// Throws when anything that was queued has failed.
    virtual void wait() = 0;
    /// What kernels are started on: a cudaStream_t, or a host_stream.
    virtual void* handle() = 0;
};

/// Of all threads. What throws, throws base::error (unavailable), and no_room where that is why.
class device {
  public:
    device() = default;
    device(const device&) = delete;
    device& operator=(const device&) = delete;
    virtual ~device() = default;

    /// Memory for any type; `bytes` is not 0.
    virtual std::byte* take(memory_kind kind, std::size_t bytes) = 0;
    virtual void give_back(memory_kind kind, std::byte* memory, std::size_t bytes) noexcept = 0;
    virtual std::unique_ptr<stream> make_stream() = 0;
    /// Zeros when the device does not say.
    virtual memory_room room() noexcept = 0;
    /// Lets go of memory that is kept for later.
    virtual void trim() noexcept {}
};

/// Memory that is given back.
class held_memory {
  public:
    held_memory(device& from, memory_kind kind) : from_(&from), kind_(kind) {}
    held_memory(const held_memory&) = delete;
    held_memory& operator=(const held_memory&) = delete;
    ~held_memory() { release(); }

    /// Gives back what it has and takes `bytes`, unless it has as many.
    std::byte* room_for(std::size_t bytes);
    void release() noexcept;
    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }

  private:
    device* from_;
    memory_kind kind_;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

/// Why the first device cannot run kernels, as the middle of a sentence; empty when it can. Starts
/// CUDA's runtime. A card without room is no obstacle: who works on it finds out, and goes
/// elsewhere.
std::string missing();

/// "the GPU is out of memory (3 MiB free of 80 MiB, 5 MiB are needed)"; the need is rounded up.
std::string shortage_of(memory_kind kind, std::uint64_t needed, const memory_room& room);

/// What those hear who asked for the card when the backend `name` took over.
std::string went_elsewhere(const no_room& short_of, std::string_view name);

}  // namespace mx::base::cuda
