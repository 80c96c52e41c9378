// SPDX-License-Identifier: Apache-2.0
// A device that keeps what it gets back for who asks next: taking memory, and pinned memory above
// all, can last longer than the work that it is for.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <unordered_map>

#include "libmx/base/cuda/device.hpp"

namespace mx::base::cuda {

/// A piece may serve for less than its size. What is kept was in use at one time: before anything
/// new is taken of `on`, all that is kept of that kind goes back. `on` has to outlive it.
class pooled_device final : public device {
  public:
    /// Larger pieces are not kept: they would serve for much smaller ones.
    static constexpr std::size_t largest_kept = std::size_t{32} << 20;

    explicit pooled_device(device& on) : on_(on) {}
    ~pooled_device() override;

    std::byte* take(memory_kind kind, std::size_t bytes) override;
    void give_back(memory_kind kind, std::byte* memory, std::size_t bytes) noexcept override;
    std::unique_ptr<stream> make_stream() override;
    memory_room room() noexcept override;
    void trim() noexcept override;

  private:
    using pieces = std::multimap<std::size_t, std::byte*>;  // by size
    pieces& kept(memory_kind kind) { return kept_[static_cast<std::size_t>(kind)]; }
    void drop(memory_kind kind) noexcept;

    device& on_;
    std::mutex guard_;
    std::array<pieces, 2> kept_;
    std::unordered_map<std::byte*, pieces::node_type> lent_;  // those that may be kept
};

}  // namespace mx::base::cuda
