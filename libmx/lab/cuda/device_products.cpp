// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/cuda/device_products.hpp"

#include <algorithm>
#include <cstring>

namespace mx::lab::cuda {
namespace {

using base::cuda::memory_kind;

constexpr std::size_t part_bytes = std::size_t{4} << 20;

}  // namespace

device_products::device_products(base::cuda::device& on, starter start, double least)
    : start_(start),
      least_(least),
      a_(on, memory_kind::device),
      b_(on, memory_kind::device),
      c_(on, memory_kind::device),
      lanes_{base::cuda::lane(on), base::cuda::lane(on)} {}

bool device_products::takes(const operand_view& a, const operand_view& b) const {
    return static_cast<double>(a.rows) * static_cast<double>(b.rows) *
               static_cast<double>(a.depth) >=
           least_;
}

// The lane that has been waiting longer, when it is done.
base::cuda::lane& device_products::next_lane() {
    base::cuda::lane& l = lanes_[turn_++ % lanes_.size()];
    l.work().wait();
    l.pinned.room_for(part_bytes);
    return l;
}

device_matrix device_products::send(const operand_view& x, base::cuda::held_memory& to) {
    const std::size_t bytes = x.rows * x.depth * sizeof(float);
    std::byte* const there = to.room_for(bytes);
    const auto* const from = reinterpret_cast<const std::byte*>(x.data);
    for (std::size_t at = 0; at < bytes; at += part_bytes) {
        base::cuda::lane& l = next_lane();
        const std::size_t size = std::min(part_bytes, bytes - at);
        std::memcpy(l.pinned.data(), from + at, size);
        l.work().copy_there(there + at, l.pinned.data(), size);
    }
    return {reinterpret_cast<const float*>(there), x.rows, x.transposed};
}

// While one part is moved to its place, the next is copied.
void device_products::receive(std::size_t bytes, float* to) {
    auto* const here = reinterpret_cast<std::byte*>(to);
    std::size_t moved = 0;
    const auto move = [&](base::cuda::lane& l) {
        const std::size_t size = std::min(part_bytes, bytes - moved);
        l.work().wait();
        std::memcpy(here + moved, l.pinned.data(), size);
        moved += size;
    };
    base::cuda::lane* before = nullptr;
    for (std::size_t at = 0; at < bytes; at += part_bytes) {
        base::cuda::lane& l = next_lane();
        l.work().copy_back(l.pinned.data(), c_.data() + at, std::min(part_bytes, bytes - at));
        if (before != nullptr) move(*before);
        before = &l;
    }
    if (before != nullptr) move(*before);
}

void device_products::multiply(const operand_view& a, const operand_view& b, float* c) {
    const std::size_t bytes = a.rows * b.rows * sizeof(float);
    auto* const result = reinterpret_cast<float*>(c_.room_for(bytes));
    const device_matrix there_a = send(a, a_), there_b = send(b, b_);
    // Two calls wait for both lanes.
    next_lane();
    base::cuda::lane& l = next_lane();
    start_({there_a, there_b, a.depth, result}, l.work());
    l.work().wait();
    receive(bytes, c);
}

}  // namespace mx::lab::cuda
