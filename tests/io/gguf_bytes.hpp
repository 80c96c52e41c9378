// SPDX-License-Identifier: Apache-2.0
// GGUF files made from their parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/io/scratch_dir.hpp"

namespace mx::test::gguf {

inline std::string text(std::string_view s) { return little(s.size(), 8).append(s); }

inline std::string entry(const std::string& key, std::uint32_t type, const std::string& value) {
    return text(key) + little(type, 4) + value;
}

inline std::string tensor_entry(const std::string& name, const std::vector<std::uint64_t>& extents,
                                std::uint32_t type, std::uint64_t offset) {
    std::string out = text(name) + little(extents.size(), 4);
    for (const std::uint64_t extent : extents) out += little(extent, 8);
    return out + little(type, 4) + little(offset, 8);
}

/// A file of version 3 with `data` bytes of zeros after its header.
inline std::string model(const std::vector<std::string>& entries,
                         const std::vector<std::string>& tensors, std::size_t data,
                         std::size_t alignment = 32) {
    std::string out = "GGUF" + little(3, 4) + little(tensors.size(), 8) + little(entries.size(), 8);
    for (const std::string& each : entries) out += each;
    for (const std::string& each : tensors) out += each;
    out.resize((out.size() + alignment - 1) / alignment * alignment, '\0');
    return out + std::string(data, '\0');
}

}  // namespace mx::test::gguf
