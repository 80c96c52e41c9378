// SPDX-License-Identifier: Apache-2.0
// A device that keeps freed memory for later allocations: allocating, above all pinned memory, can
// take longer than the work that it is for.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <unordered_map>

#include "libmx/base/cuda/device.hpp"

namespace mx::base::cuda {

/// A piece may serve for less than its size. Kept memory of a kind is freed when `on` has no room,
/// and when it is more than what is in use with the piece that is allocated, so that both together
/// are at most twice what was in use at a time; not whenever something is allocated, because
/// freeing waits for all work of a GPU. `on` must outlive this object.
class pooled_device final : public device {
  public:
    /// Larger pieces are not kept, because they would serve for much smaller ones.
    static constexpr std::size_t largest_kept = std::size_t{32} << 20;

    explicit pooled_device(device& on) : on_(on) {}
    ~pooled_device() override;

    std::byte* take(memory_kind kind, std::size_t bytes) override;
    void give_back(memory_kind kind, std::byte* memory, std::size_t bytes) noexcept override;
    std::unique_ptr<stream> make_stream() override;
    memory_info memory() noexcept override;
    void trim() noexcept override;

  private:
    using pieces = std::multimap<std::size_t, std::byte*>;  // by size
    pieces& kept(memory_kind kind) { return kept_[static_cast<std::size_t>(kind)]; }
    void drop(memory_kind kind) noexcept;
    std::byte* allocate(memory_kind kind, std::size_t bytes);

    device& on_;
    std::mutex guard_;
    std::array<pieces, 2> kept_;
    std::unordered_map<std::byte*, pieces::node_type> lent_;  // those that may be kept
    std::array<std::size_t, 2> in_use_{};                     // bytes of all, by kind
};

}  // namespace mx::base::cuda
