// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/cuda/device_arrays.hpp"

#include <exception>
#include <utility>

namespace mx::lab::cuda {

using base::cuda::memory_kind;

device_arrays::device_arrays(base::cuda::device& on, const starters& start,
                             const codec::cuda::array_starters& quantizing)
    : device_(on), start_(start), lane_(device_), quantizer_(device_, lane_, quantizing) {}

// Each stream may have to wait for the other.
device_arrays::~device_arrays() {
    if (beside_) settle();
}

void device_arrays::run(const job& what, std::uint64_t count) {
    if (count != 0) start_.job(what, count, lane_.work());
}

void device_arrays::multiply(const product_launch& l) { start_.product(l, lane_.work()); }

void device_arrays::multiply_beside(const product_launch& l) {
    if (!beside_) beside_ = device_.make_stream_of_kernels();
    beside_->follow(lane_.work());
    joined_ = false;
    start_.product(l, *beside_);
}

void device_arrays::join() {
    if (joined_) return;
    lane_.work().follow(*beside_);
    joined_ = true;
}

void device_arrays::wait() {
    join();
    lane_.work().wait();
}

void device_arrays::settle() noexcept {
    try {
        wait();
    } catch (const std::exception&) {
        // Whoever fetches from the stream is told.
    }
}

void device_arrays::send(const void* here, std::size_t bytes, void* there) {
    lane_.work().send(static_cast<std::byte*>(there), here, bytes);
}

void device_arrays::fetch(const void* there, std::size_t bytes, void* here) {
    join();
    lane_.work().copy_back(static_cast<std::byte*>(here), static_cast<const std::byte*>(there),
                           bytes);
    wait();
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

std::byte* device_memory::reserve(std::size_t bytes) {
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
