// SPDX-License-Identifier: Apache-2.0
// Arrays where a context computes: in memory of the host, or in that of its device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "libmx/base/aligned.hpp"
#include "libmx/lab/cuda/device_arrays.hpp"
#include "libmx/lab/execution_context.hpp"

namespace mx::lab {

/// Copies from the host to where `on` computes, and back.
template <typename T>
void send(execution_context& on, std::span<const T> here, T* there) {
    if (on.device() == nullptr) {
        std::ranges::copy(here, there);
    } else {
        on.device()->send(here.data(), here.size_bytes(), there);
    }
}
template <typename T>
std::vector<T> fetched(execution_context& on, std::span<const T> there) {
    if (on.device() == nullptr) return {there.begin(), there.end()};
    std::vector<T> here(there.size());
    on.device()->fetch(there.data(), there.size_bytes(), here.data());
    return here;
}
/// Copies where `on` computes.
inline void copy_there(const execution_context& on, const float* x, std::size_t count, float* y) {
    on.run(jobs::round{{}, rounding::none, x, y}, count);
}

/// A growing array, which the host reads and writes by put() and get() only. It may be used with
/// one context after another; the device of each must outlive it.
template <typename T>
class array_of {
  public:
    /// Makes space for `count` elements; keeps the contents only if it was large enough and is in
    /// the same memory.
    T* reserve(const execution_context& on, std::size_t count) {
        if (on.device() == nullptr) {
            leave_device();
            data_ = here_.reserve(count);
        } else {
            if (!there_.is_of(*on.device())) there_ = cuda::device_memory(*on.device());
            data_ = reinterpret_cast<T*>(there_.reserve(count * sizeof(T)));
        }
        return data_;
    }
    T* data() { return data_; }
    const T* data() const { return data_; }

    T* put(execution_context& on, std::span<const T> x) {
        T* const to = reserve(on, x.size());
        send(on, x, to);
        return to;
    }
    std::vector<T> get(execution_context& on, std::size_t count) const {
        return fetched(on, std::span<const T>(data_, count));
    }
    /// Frees memory of a device.
    void leave_device() noexcept {
        if (there_.release()) data_ = nullptr;
    }

  private:
    base::aligned_buffer<T> here_;
    cuda::device_memory there_;
    T* data_ = nullptr;
};
using array = array_of<float>;

/// An array of the host with a copy on a device; each is brought up to date when it is asked for.
/// Used by one thread.
class mirrored {
  public:
    void assign(std::vector<float> here);
    void assign(std::size_t count, float value) { assign(std::vector<float>(count, value)); }

    std::size_t size() const { return here_.size(); }
    bool empty() const { return here_.empty(); }

    /// For reading, and for changes, on the host.
    const std::vector<float>& here() const;
    std::vector<float>& change_here();

    /// For reading, and for changes, where `on` computes.
    std::span<const float> there(execution_context& on) const;
    std::span<float> change_there(execution_context& on);

  private:
    mutable std::vector<float> here_;
    mutable array there_;
    // The device whose copy is newer than here_, and the one whose copy is the same.
    mutable cuda::device_arrays *newer_ = nullptr, *same_ = nullptr;
};

}  // namespace mx::lab
