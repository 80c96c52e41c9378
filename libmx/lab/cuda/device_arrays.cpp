// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/cuda/device_arrays.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "libmx/codec/cuda/batch_layout.hpp"

namespace mx::lab::cuda {
namespace {

using base::cuda::memory_kind;

constexpr std::size_t part_bytes = std::size_t{4} << 20;  // of pinned memory
// A segment has some 4096 elements. A launch may have eight times those of a slice of a batch: its
// sums, which nobody reads here, still fit.
constexpr std::uint64_t segment_elements = 4096, launch_elements = std::uint64_t{1} << 23;
constexpr std::uint64_t vector_rows = 4;  // so that each launch begins at a multiple of 16 bytes

bool is_aligned(const float* x) { return reinterpret_cast<std::uintptr_t>(x) % 16 == 0; }

}  // namespace

device_arrays::device_arrays(base::cuda::device& on, const starters& start)
    : device_(on),
      start_(start),
      aligned_(on, memory_kind::device),
      work_(on, memory_kind::device),
      lane_(on) {}

void device_arrays::run(const job& what, std::uint64_t count) {
    if (count != 0) start_.job(what, count, lane_.work());
}

void device_arrays::multiply(const product_launch& l) { start_.product(l, lane_.work()); }

void device_arrays::wait() {
    lane_.work().wait();
    used_ = 0;
}

void device_arrays::settle() noexcept {
    try {
        wait();
    } catch (const std::exception&) {
        // Whoever fetches from the stream is told.
    }
}

// Pinned memory that no queued copy uses.
std::byte* device_arrays::staged(std::size_t bytes) {
    if (used_ + bytes > lane_.pinned.size()) {
        wait();
        lane_.pinned.room_for(std::max(bytes, part_bytes));
    }
    used_ += codec::cuda::padded(bytes);
    return lane_.pinned.data() + used_ - codec::cuda::padded(bytes);
}

void device_arrays::send(const void* here, std::size_t bytes, void* there) {
    for (std::size_t at = 0; at < bytes; at += part_bytes) {
        const std::size_t size = std::min(part_bytes, bytes - at);
        std::byte* const part = staged(size);
        std::memcpy(part, static_cast<const std::byte*>(here) + at, size);
        lane_.work().copy_there(static_cast<std::byte*>(there) + at, part, size);
    }
}

void device_arrays::fetch(const void* there, std::size_t bytes, void* here) {
    for (std::size_t at = 0; at < bytes; at += part_bytes) {
        const std::size_t size = std::min(part_bytes, bytes - at);
        std::byte* const part = staged(size);
        lane_.work().copy_back(part, static_cast<const std::byte*>(there) + at, size);
        wait();
        std::memcpy(static_cast<std::byte*>(here) + at, part, size);
    }
}

void device_arrays::quantize(const codec::block_params& p, const quantized_matrix& m) {
    if (m.rows == 0 || m.cols == 0) return;
    const float* x = m.x;
    if (!is_aligned(x)) {
        const std::uint64_t count = m.rows * m.cols;
        if (count * sizeof(float) > aligned_.size()) wait();
        auto* const copy = reinterpret_cast<float*>(aligned_.room_for(count * sizeof(float)));
        run(jobs::round{{}, rounding::none, x, copy}, count);
        x = copy;
    }
    const codec::recipe_request request{.params = &p,
                                        .wanted = codec::detail::codes,
                                        .values = true,
                                        .sums = false,
                                        .all_values = true};
    const std::span<const codec::recipe_request> requests(&request, 1);
    const std::uint64_t segment_rows =
        std::max<std::uint64_t>(1, segment_elements / (m.block_rows * m.cols)) * m.block_rows;
    const std::uint64_t least = vector_rows * segment_rows;
    const std::uint64_t at_once =
        std::max<std::uint64_t>(1, launch_elements / (least * m.cols)) * least;
    std::vector<codec::placed_segment> segments;
    for (std::uint64_t begin = 0; begin < m.rows; begin += at_once) {
        const std::uint64_t rows = std::min(at_once, m.rows - begin);
        segments.clear();
        for (std::uint64_t row = 0; row < rows; row += segment_rows) {
            segments.push_back(
                {{m.tensor, (begin + row) * m.cols, m.cols, std::min(segment_rows, rows - row),
                  m.cols, m.block_rows, m.block_cols},
                 row,
                 0});
        }
        // A rectangle of no rows: values are on the device.
        const codec::value_rectangle none{{tensor::dtype::f32, nullptr, m.cols}, 0, m.cols};
        const codec::cuda::batch_layout l = codec::cuda::lay_out(none, segments, requests);
        const std::size_t bytes = l.there_bytes + l.back_bytes + l.scratch_bytes;
        if (bytes > work_.size()) wait();
        std::byte* const there = work_.room_for(bytes);
        std::byte* const back = there + l.there_bytes;
        std::byte* const here = staged(l.sent_bytes);
        codec::cuda::launch launch =
            codec::cuda::fill(l, none, segments, requests, here, there, back, back + l.back_bytes);
        launch.values = {reinterpret_cast<const std::byte*>(x + begin * m.cols), m.cols,
                         tensor::dtype::f32};
        lane_.work().copy_there(there, here, l.sent_bytes);
        start_.segments(launch, lane_.work());
        start_.values(
            {p.plain ? launch.recipes : nullptr, codec::cuda::result_of(l, 0, 0, back).of_blocks,
             rows, m.cols, static_cast<std::uint32_t>(m.block_rows),
             static_cast<std::uint32_t>(m.block_cols), m.to + begin * (m.transposed ? 1 : m.cols),
             m.transposed ? 1 : m.cols, m.transposed ? m.rows : 1},
            lane_.work());
    }
}

void device_arrays::rotate(const transform::rotation& r, float* x, std::uint64_t rows,
                           std::uint64_t cols, transform::run along, bool back) {
    const bool down = along == transform::run::column;
    const std::uint64_t length = down ? rows : cols;
    const std::vector<float> signs = transform::signs_of(r);
    rotation_launch l{};
    l.runs = down ? cols : rows;
    l.run_step = down ? 1 : cols;
    l.step = down ? cols : 1;
    l.back = back;
    // Groups of `size` from position `at` of every run on.
    const auto turn = [&](std::uint64_t at, std::uint64_t groups, std::size_t size) {
        l.x = x + at * l.step;
        l.groups = groups;
        l.size = static_cast<std::uint32_t>(size);
        l.base = static_cast<std::uint32_t>(transform::base_of(size));
        l.factor = transform::factor_of(size);
        std::ranges::fill(l.minus, 0u);
        for (std::size_t i = 0; i < size; ++i) {
            if (signs[at % signs.size() + i] < 0) l.minus[i / 32] |= 1u << i % 32;
        }
        std::ranges::fill(l.minus_entry, 0u);
        for (std::size_t i = 0; i < l.base; ++i) {
            for (std::size_t j = 0; j < l.base; ++j) {
                const int entry = transform::base_entry(l.base, back ? j : i, back ? i : j);
                if (entry < 0) l.minus_entry[i] |= 1u << j;
            }
        }
        start_.rotation(l, lane_.work());
    };
    const std::uint64_t whole = length / signs.size();
    if (whole > 0) turn(0, whole, signs.size());
    for (std::uint64_t at = whole * signs.size(); at < length;) {
        const std::uint64_t piece = std::bit_floor(length - at);
        turn(at, 1, static_cast<std::size_t>(piece));
        at += piece;
    }
}

device_memory::device_memory(device_memory&& other) noexcept
    : by_(other.by_), data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}

device_memory& device_memory::operator=(device_memory&& other) noexcept {
    release();
    by_ = other.by_;
    data_ = std::exchange(other.data_, nullptr);
    size_ = other.size_;
    return *this;
}

std::byte* device_memory::room_for(std::size_t bytes) {
    if (data_ != nullptr && bytes <= size_) return data_;
    release();
    if (bytes == 0) return nullptr;
    data_ = by_->memory().take(memory_kind::device, bytes);
    size_ = bytes;
    return data_;
}

bool device_memory::release() noexcept {
    if (data_ == nullptr) return false;
    by_->settle();
    by_->memory().give_back(memory_kind::device, data_, size_);
    data_ = nullptr;
    return true;
}

}  // namespace mx::lab::cuda
