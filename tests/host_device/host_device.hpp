// SPDX-License-Identifier: Apache-2.0
// The host in the role of a device, for tests: as asynchronous as a device, with any memory limit.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <vector>

#include "libmx/base/cuda/device.hpp"

namespace mx::base::cuda {

/// Executes nothing until it is waited for: reading results too early, or writing to data that are
/// still to be copied, gives wrong bytes.
class host_stream final : public stream {
  public:
    /// `observe` is called when a copy to the device is queued, with its source; it may be empty.
    explicit host_stream(std::function<void(const std::byte*, std::size_t)> observe = {})
        : observe_(std::move(observe)) {}
    ~host_stream() override;
    void queue(std::function<void()> work) {
        capturing_ ? captured_.push_back(std::move(work)) : queued_.push_back(std::move(work));
    }
    void copy_there(std::byte* device, const std::byte* host, std::size_t bytes) override;
    void copy_rows_there(std::byte* device, const std::byte* host, std::size_t bytes,
                         std::size_t rows, std::size_t pitch) override;
    void copy_back(std::byte* host, const std::byte* device, std::size_t bytes) override;
    void send(std::byte* device, const void* host, std::size_t bytes) override;
    void copy_across(std::byte* to, const std::byte* from, std::size_t bytes) override;
    void wait() override;
    void* handle() override { return this; }
    /// What is followed is executed as late as possible.
    void follow(stream& other) override;
    void begin_capture() override;
    std::unique_ptr<graph> end_capture() override;

  private:
    void require_no_capture() const;
    void run(std::size_t until);

    std::deque<std::function<void()>> queued_;
    std::size_t done_ = 0;  // of all that were queued
    std::vector<std::function<void()>> captured_;
    std::vector<host_stream*> forks_;  // streams that follow this one in its capture
    bool capturing_ = false;
    std::function<void(const std::byte*, std::size_t)> observe_;
};

/// Memory is filled with arbitrary bytes on allocation.
class host_device final : public device {
  public:
    /// Bytes that can be allocated at a time, of either kind.
    struct limits {
        std::size_t device = std::numeric_limits<std::size_t>::max();
        std::size_t pinned = std::numeric_limits<std::size_t>::max();
    };
    host_device() = default;
    /// `refuses` is called for every allocation, including streams, with a number that counts from
    /// 0; it may be empty.
    explicit host_device(const limits& most, std::function<bool(std::size_t)> refuses = {})
        : most_{most.device, most.pinned}, refuses_(std::move(refuses)) {}

    /// For streams that are made afterwards: see host_stream.
    void observe(std::function<void(const std::byte* host, std::size_t bytes)> copies) {
        observe_ = std::move(copies);
    }

    std::byte* take(memory_kind kind, std::size_t bytes) override;
    void give_back(memory_kind kind, std::byte* memory, std::size_t bytes) noexcept override;
    std::unique_ptr<stream> make_stream() override;
    memory_info memory() noexcept override;

    /// Bytes allocated now, and the maximum so far.
    std::size_t held(memory_kind kind) const;
    std::size_t peak(memory_kind kind) const;
    /// The number of allocations, successful or not.
    std::size_t asked() const;

  private:
    bool refused();
    static std::size_t index_of(memory_kind kind) { return static_cast<std::size_t>(kind); }

    mutable std::mutex guard_;
    std::array<std::size_t, 2> most_{limits{}.device, limits{}.pinned};
    std::array<std::size_t, 2> held_{}, peak_{};
    std::size_t asked_ = 0;
    std::function<bool(std::size_t)> refuses_;
    std::function<void(const std::byte*, std::size_t)> observe_;
};

/// A stream of the caller as base::cuda::device_of_stream makes it a device: memory is freed in the
/// order of the stream. Both must outlive it.
class host_stream_device final : public device {
  public:
    host_stream_device(host_device& memory, host_stream& on) : memory_(memory), on_(on) {}
    std::byte* take(memory_kind kind, std::size_t bytes) override {
        return memory_.take(kind, bytes);
    }
    void give_back(memory_kind kind, std::byte* memory, std::size_t bytes) noexcept override {
        on_.queue([this, kind, memory, bytes] { memory_.give_back(kind, memory, bytes); });
    }
    std::unique_ptr<stream> make_stream() override;
    memory_info memory() noexcept override { return memory_.memory(); }

  private:
    host_device& memory_;
    host_stream& on_;
};

}  // namespace mx::base::cuda
