// SPDX-License-Identifier: Apache-2.0
// Collects values of consecutive indices and writes them to an array in runs.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "libmx/io/writer.hpp"

namespace mx::engine {

/// Values of one array of a writer; put() with increasing indices makes few, long writes.
template <typename T>
class run_buffer {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    run_buffer(io::array_writer& writer, std::size_t array) : writer_(&writer), array_(array) {}

    void put(std::uint64_t index, const T& value) { put(index, std::span(&value, 1)); }
    void put(std::uint64_t index, std::span<const T> values) {
        if (!values_.empty() && index != first_ + values_.size()) flush();
        if (values_.empty()) first_ = index;
        values_.insert(values_.end(), values.begin(), values.end());
    }

    void flush() {
        if (values_.empty()) return;
        writer_->write(array_, first_ * sizeof(T), std::as_bytes(std::span<const T>(values_)));
        values_.clear();
    }

  private:
    io::array_writer* writer_;
    std::size_t array_;
    std::uint64_t first_ = 0;
    std::vector<T> values_;
};

}  // namespace mx::engine
