// SPDX-License-Identifier: Apache-2.0
// Byte sources from which other readers are composed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libmx/io/input_file.hpp"
#include "libmx/io/reader.hpp"

namespace mx::io {

using shared_source = std::shared_ptr<const byte_source>;
using read_function = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;
using expect_function = std::function<void(std::uint64_t offset, std::uint64_t bytes)>;

/// A source with these functions; both may be called from several threads at once.
std::unique_ptr<byte_source> make_source(read_function read, expect_function expect = {});

/// A source of elements of `width` bytes (at most 16). `read` fills whole elements, from the given
/// index on.
std::unique_ptr<byte_source> make_element_source(std::size_t width, read_function read,
                                                 expect_function expect = {});

/// The most recently used of what `open` has opened by number, at most `most`. Thread-safe; `open`
/// is called from one thread at a time.
template <class Opened>
class recently_used {
  public:
    recently_used(std::size_t most, std::function<Opened(std::uint64_t)> open)
        : most_(most), open_(std::move(open)) {}

    Opened get(std::uint64_t number) {
        const std::lock_guard lock(mutex_);
        const auto known = places_.find(number);
        if (known != places_.end()) {
            opened_.splice(opened_.begin(), opened_, known->second);
            return opened_.front().second;
        }
        if (opened_.size() == most_) {
            places_.erase(opened_.back().first);
            opened_.pop_back();
        }
        opened_.emplace_front(number, open_(number));
        places_.emplace(number, opened_.begin());
        return opened_.front().second;
    }

  private:
    using list = std::list<std::pair<std::uint64_t, Opened>>;
    std::size_t most_;
    std::function<Opened(std::uint64_t)> open_;
    std::mutex mutex_;
    list opened_;  ///< latest first
    std::unordered_map<std::uint64_t, typename list::iterator> places_;
};
using source_cache = recently_used<shared_source>;

/// Bytes [offset, offset + size) of a file; `tensor` is named in errors.
std::unique_ptr<byte_source> file_window(shared_file file, std::uint64_t offset, std::uint64_t size,
                                         std::string tensor);

/// Bytes from `offset` on of another source.
std::unique_ptr<byte_source> source_window(shared_source source, std::uint64_t offset);

/// Elements of `width` bytes (2, 4, 8 or 16) stored big-endian, made little-endian. Complex values
/// are two elements of half their width.
std::unique_ptr<byte_source> byte_swapped(shared_source source, std::size_t width);

/// Calls `read(first_element, elements)` for the bytes [offset, offset + out.size()) of elements of
/// `width` bytes: once for the whole elements, and through a small buffer for the partial ones at
/// the ends, of which only the required bytes are copied to `out`.
void read_whole_elements(std::uint64_t offset, std::span<std::byte> out, std::size_t width,
                         const read_function& read);

}  // namespace mx::io
