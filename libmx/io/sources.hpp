// SPDX-License-Identifier: Apache-2.0
// Byte sources that other readers are put together from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libmx/io/input_file.hpp"
#include "libmx/io/reader.hpp"

namespace mx::io {

using shared_source = std::shared_ptr<const byte_source>;

/// Bytes [offset, offset + size) of a file; `tensor` is named in errors.
std::unique_ptr<byte_source> file_window(shared_file file, std::uint64_t offset, std::uint64_t size,
                                         std::string tensor);

/// Bytes from `offset` on of another source.
std::unique_ptr<byte_source> source_window(shared_source source, std::uint64_t offset);

/// Elements of `width` bytes (2, 4, 8 or 16) stored big-endian, made little-endian. Complex values
/// are two elements of half their width.
std::unique_ptr<byte_source> byte_swapped(shared_source source, std::size_t width);

/// Calls `read(first_element, elements)` for the bytes [offset, offset + out.size()) of elements
/// of `width` bytes: once for the whole elements, and through a small buffer for the cut ones at
/// the ends, of which only the wanted bytes are copied to `out`.
void read_whole_elements(std::uint64_t offset, std::span<std::byte> out, std::size_t width,
                         const std::function<void(std::uint64_t, std::span<std::byte>)>& read);

}  // namespace mx::io
