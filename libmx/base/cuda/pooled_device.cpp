// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/cuda/pooled_device.hpp"

namespace mx::base::cuda {

pooled_device::~pooled_device() { trim(); }

std::byte* pooled_device::allocate(memory_kind kind, std::size_t bytes) {
    std::size_t idle = 0;
    for (const auto& [size, memory] : kept(kind)) idle += size;
    if (idle > in_use_[static_cast<std::size_t>(kind)] + bytes) drop(kind);
    try {
        return on_.take(kind, bytes);
    } catch (const out_of_memory&) {
        if (kept(kind).empty()) throw;
    }
    drop(kind);
    return on_.take(kind, bytes);
}

std::byte* pooled_device::take(memory_kind kind, std::size_t bytes) {
    const std::lock_guard lock(guard_);
    std::size_t& in_use = in_use_[static_cast<std::size_t>(kind)];
    if (bytes > largest_kept) {
        std::byte* const memory = allocate(kind, bytes);
        in_use += bytes;
        return memory;
    }
    // A node for its return, which must not fail.
    pieces::node_type node;
    const auto found = kept(kind).lower_bound(bytes);
    if (found != kept(kind).end()) {
        node = kept(kind).extract(found);
    } else {
        pieces one;
        one.emplace(bytes, nullptr);
        node = one.extract(one.begin());
        node.mapped() = allocate(kind, bytes);
    }
    std::byte* const memory = node.mapped();
    const std::size_t size = node.key();
    try {
        lent_.emplace(memory, std::move(node));
    } catch (...) {
        on_.give_back(kind, memory, size);
        throw;
    }
    in_use += size;
    return memory;
}

void pooled_device::give_back(memory_kind kind, std::byte* memory, std::size_t bytes) noexcept {
    const std::lock_guard lock(guard_);
    std::size_t& in_use = in_use_[static_cast<std::size_t>(kind)];
    const auto lent = lent_.find(memory);
    if (lent == lent_.end()) {
        in_use -= bytes;
        return on_.give_back(kind, memory, bytes);
    }
    in_use -= lent->second.key();
    kept(kind).insert(std::move(lent->second));
    lent_.erase(lent);
}

std::unique_ptr<stream> pooled_device::make_stream() {
    try {
        return on_.make_stream();
    } catch (const out_of_memory&) {
        const std::lock_guard lock(guard_);
        drop(memory_kind::device);
        return on_.make_stream();
    }
}

memory_info pooled_device::memory() noexcept {
    const std::lock_guard lock(guard_);
    memory_info r = on_.memory();
    for (const auto& [bytes, memory] : kept(memory_kind::device)) r.free += bytes;
    return r;
}

void pooled_device::trim() noexcept {
    const std::lock_guard lock(guard_);
    drop(memory_kind::device);
    drop(memory_kind::pinned);
}

void pooled_device::drop(memory_kind kind) noexcept {
    for (const auto& [bytes, memory] : kept(kind)) on_.give_back(kind, memory, bytes);
    kept(kind).clear();
}

}  // namespace mx::base::cuda
