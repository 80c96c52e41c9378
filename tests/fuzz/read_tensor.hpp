// SPDX-License-Identifier: Apache-2.0
// How programs read a tensor, and what holds of all tensors of a model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/io/reader.hpp"
#include "libmx/tensor/shape.hpp"
#include "tests/fuzz/choices.hpp"

namespace mx::fuzz {

/// The bytes that the tensors occupy are at most those of their files.
inline void check_occupied(const io::reader& model) {
    std::uint64_t left = 0;
    for (const auto& [path, bytes] : model.files()) left += bytes;
    for (const io::tensor_info& t : model.tensors()) {
        require(t.occupied_bytes() <= left, "tensors occupy no more than their files");
        left -= t.occupied_bytes();
    }
}

inline std::string read_bytes(const io::byte_source& source, std::uint64_t at,
                              std::uint64_t count) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(count));
    source.expect(at, count);
    source.read(at, bytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The bytes of a tensor, of which parts must be what they are of the whole; empty if there are
/// more than `most`, whose first and last are read.
inline std::string read_tensor(choices& from, const io::reader& model, std::size_t index,
                               std::uint64_t most) {
    const io::tensor_info& info = model.tensors()[index];
    const auto elements = tensor::element_count(info.shape);
    require(elements && *elements == info.elements, "elements are those of the shape");
    const auto source = model.open(index);
    const std::uint64_t size = info.bytes;
    if (size == 0 || size > most) {
        const std::uint64_t some = std::min<std::uint64_t>(size, 4096);
        read_bytes(*source, 0, some);
        read_bytes(*source, size - some, some);
        return {};
    }
    std::string whole = read_bytes(*source, 0, size);
    for (int i = 0; i < 3; ++i) {
        const std::uint64_t at = from.below(size);
        const std::uint64_t count = std::min(size - at, 1 + from.below(5000));
        require(read_bytes(*source, at, count) ==
                    whole.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(count)),
                "a part is that of the whole");
    }
    return whole;
}

}  // namespace mx::fuzz
