// SPDX-License-Identifier: Apache-2.0
// A device whose work can be captured in a graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "libmx/base/cuda/device.hpp"

namespace mx::lab::cuda {

/// Passes everything on to a device, and knows what a graph of it depends on. It has one stream
/// that copies and waits, and another one for kernels. Used by one thread.
class watched_device final : public base::cuda::device {
  public:
    /// `on` must outlive it.
    explicit watched_device(base::cuda::device& on) : on_(on) {}

    std::byte* take(base::cuda::memory_kind kind, std::size_t bytes) override;
    void give_back(base::cuda::memory_kind kind, std::byte* memory,
                   std::size_t bytes) noexcept override;
    std::unique_ptr<base::cuda::stream> make_stream() override;
    std::unique_ptr<base::cuda::stream> make_stream_of_kernels() { return on_.make_stream(); }
    base::cuda::memory_info memory() noexcept override { return on_.memory(); }
    void trim() noexcept override { on_.trim(); }

    /// How often memory was freed.
    std::uint64_t frees() const { return frees_; }
    /// Bytes that were sent, each time rounded up as capture() places them.
    std::size_t sent_bytes() const { return sent_bytes_; }

    /// What `work` queues, as a graph, in which memory on the device takes the place of what it
    /// sends: `sent` has room for `bytes` of it, and receives them. Null if it cannot be captured,
    /// because it sends more, allocates, waits, or copies from or to the host in another way;
    /// nothing is queued then. Other exceptions of `work` are passed on.
    std::unique_ptr<base::cuda::graph> capture(const std::function<void()>& work, std::byte* sent,
                                               std::size_t bytes);

  private:
    class watched_stream;
    // What is sent while a graph is captured, and what is freed: the graph that is not made any
    // more may still refer to it.
    struct collection {
        std::byte* sent;
        std::size_t most;
        std::vector<std::byte> bytes;
        std::vector<std::function<void()>> frees;
    };
    void require_no_capture() const;
    std::unique_ptr<base::cuda::graph> captured(const std::function<void()>& work);

    base::cuda::device& on_;
    watched_stream* stream_ = nullptr;
    std::uint64_t frees_ = 0;
    std::size_t sent_bytes_ = 0;
    std::optional<collection> collects_;  // while a graph is captured
};

}  // namespace mx::lab::cuda
