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

/// The most recently used of the sources that `open` has opened by number, at most `most` of them.
/// Thread-safe; `open` is called from one thread at a time.
class source_cache {
  public:
    source_cache(std::size_t most, std::function<shared_source(std::uint64_t)> open)
        : most_(most), open_(std::move(open)) {}
    shared_source get(std::uint64_t number);

  private:
    std::size_t most_;
    std::function<shared_source(std::uint64_t)> open_;
    std::mutex mutex_;
    std::list<std::pair<std::uint64_t, shared_source>> opened_;  ///< latest first
};

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
