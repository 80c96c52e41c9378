// SPDX-License-Identifier: Apache-2.0
// The interface of a device: its memory, host memory that it copies from and to asynchronously, and
// queues of work. CUDA's runtime implements it (device_memory.hpp); the host can, too
// (tests/host_device), so that code for devices can be tested without one.
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
    pinned,  ///< of the host, never paged out, so that copies run while the host works
};

/// Bytes of the device.
struct memory_info {
    std::uint64_t free = 0, all = 0;
};

/// The device is out of memory, or the host out of pinned memory: the caller may try with less, or
/// use another backend. All other failures of a device are plain base::error.
class out_of_memory : public error {
  public:
    /// `shortage`: what is short, for the middle of a sentence.
    explicit out_of_memory(const std::string& shortage);
    const std::string& shortage() const noexcept { return shortage_; }

  private:
    std::string shortage_;
};

/// Work that a stream captured. May be destroyed while it is executed.
class graph {
  public:
    graph() = default;
    graph(const graph&) = delete;
    graph& operator=(const graph&) = delete;
    virtual ~graph() = default;

    /// Queues all of it on that stream once more.
    virtual void start() = 0;
};

/// Copies and kernels in order, concurrent with those of other streams. Memory of the host that is
/// copied from or to is pinned, so that this thread does not wait for it, and must not change until
/// wait() returns; send() and copy_back() take any.
class stream {
  public:
    stream() = default;
    stream(const stream&) = delete;
    stream& operator=(const stream&) = delete;
    virtual ~stream() = default;  ///< waits

    virtual void copy_there(std::byte* device, const std::byte* host, std::size_t bytes) = 0;
    /// Rows of `bytes` that begin `pitch` bytes apart on the host, one after another.
    virtual void copy_rows_there(std::byte* device, const std::byte* host, std::size_t bytes,
                                 std::size_t rows, std::size_t pitch) = 0;
    virtual void copy_back(std::byte* host, const std::byte* device, std::size_t bytes) = 0;
    /// To the device, from memory that may change afterwards.
    virtual void send(std::byte* device, const void* host, std::size_t bytes) = 0;
    /// From one place of the device to another.
    virtual void copy_across(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
    /// Throws when anything that was queued has failed.
    virtual void wait() = 0;
    /// What kernels are started on: a cudaStream_t, or a host_stream.
    virtual void* handle() = 0;

    /// What is queued here from now on waits for what is queued on `other`, a stream of the same
    /// device, until now.
    virtual void follow(stream& other) = 0;

    /// Until end_capture(), kernels and copy_across() are not queued, but become the graph that it
    /// returns, also those of a stream that follows this one and that this one follows then.
    /// Meanwhile this thread calls no other member, and allocates and frees nothing.
    virtual void begin_capture() = 0;
    virtual std::unique_ptr<graph> end_capture() = 0;
};

/// Shared by all threads. Throws base::error (unavailable), and out_of_memory if memory is short.
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
    /// Zeros if the device does not report them.
    virtual memory_info memory() noexcept = 0;
    /// Frees memory that is kept for later.
    virtual void trim() noexcept {}
};

/// Memory that is freed at the end of its lifetime.
class held_memory {
  public:
    held_memory(device& from, memory_kind kind) : from_(&from), kind_(kind) {}
    held_memory(const held_memory&) = delete;
    held_memory& operator=(const held_memory&) = delete;
    ~held_memory() { release(); }

    /// Frees its memory and allocates `bytes`, unless it is large enough.
    std::byte* reserve(std::size_t bytes);
    void release() noexcept;
    std::byte* data() const { return data_; }
    std::size_t size() const { return size_; }

  private:
    device* from_;
    memory_kind kind_;
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

/// A stream, made when it is first needed, and memory that its work reads and writes.
class lane {
  public:
    explicit lane(device& on)
        : pinned(on, memory_kind::pinned), card(on, memory_kind::device), on_(&on) {}

    stream& work();
    /// Waits for what was queued, whether it fails or not.
    void stop() noexcept { work_.reset(); }
    /// The same, and frees the memory.
    void release() noexcept;

    held_memory pinned, card;

  private:
    device* on_;
    std::unique_ptr<stream> work_;  // declared last: it waits before the memory is freed
};

/// Why the first device cannot run kernels, for the middle of a sentence; empty if it can. Starts
/// CUDA's runtime. A GPU without free memory is no reason: allocation fails later, and the caller
/// uses another backend.
std::string missing();

/// Why a driver cannot serve the runtime of this program, and what helps, for the middle of a
/// sentence; empty if it can. Versions as CUDA has them: 12040 is 12.4, and a driver of 0 is none.
std::string driver_obstacle(int driver, int runtime);

/// "the GPU is out of memory (3 MiB free of 80 MiB, 5 MiB are needed)"; the need is rounded up.
std::string shortage_of(memory_kind kind, std::uint64_t needed, const memory_info& now);

/// The notice for callers that requested the GPU when the backend `name` took over.
std::string went_elsewhere(const out_of_memory& short_of, std::string_view name);

}  // namespace mx::base::cuda
