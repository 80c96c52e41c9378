// SPDX-License-Identifier: Apache-2.0
// A growing buffer whose elements begin at a cache line, for vector loads.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace mx::base {

/// Scratch of trivial elements. Growing loses the contents; memory is not cleared.
template <typename T>
class aligned_buffer {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    aligned_buffer() = default;
    aligned_buffer(const aligned_buffer&) = delete;
    aligned_buffer& operator=(const aligned_buffer&) = delete;
    aligned_buffer(aligned_buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    ~aligned_buffer() { ::operator delete(data_, alignment); }

    /// Makes space for `count` elements; keeps the contents only if it was large enough.
    T* reserve(std::size_t count) {
        if (count > size_) {
            ::operator delete(data_, alignment);
            data_ = nullptr;
            size_ = 0;
            // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a pointer
            data_ = static_cast<T*>(::operator new(count * sizeof(T), alignment));
            size_ = count;
        }
        return data_;
    }
    T* data() { return data_; }
    const T* data() const { return data_; }

  private:
    static constexpr std::align_val_t alignment{64};
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace mx::base
