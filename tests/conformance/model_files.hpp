// SPDX-License-Identifier: Apache-2.0
// A file that is removed with its test, and its contents.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "libmx/io/reader.hpp"

namespace mx::tests {

/// A path in the system's temporary folder, removed at the end.
class temporary_file {
  public:
    explicit temporary_file(const std::string& suffix)
        : path_((std::filesystem::temp_directory_path() /
                 ("mx-conformance-" + std::to_string(::getpid()) + suffix))
                    .string()) {}
    ~temporary_file() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    temporary_file(const temporary_file&) = delete;
    temporary_file& operator=(const temporary_file&) = delete;
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

/// The stored bytes of tensor `name`.
inline std::vector<std::byte> bytes_of(const io::reader& file, const std::string& name) {
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
        if (file.tensors()[i].name != name) continue;
        std::vector<std::byte> bytes(file.tensors()[i].bytes);
        file.open(i)->read(0, bytes);
        return bytes;
    }
    throw std::out_of_range("no tensor " + name);
}

/// `count` codes of `bits` each from their packed form: a little-endian stream of bits, where 4-
/// and 6-bit codes are dense and any other width takes a byte.
inline std::vector<std::uint8_t> unpacked(const std::vector<std::byte>& bytes, int bits,
                                          std::size_t count) {
    const std::size_t width = bits == 4 || bits == 6 ? static_cast<std::size_t>(bits) : 8;
    std::vector<std::uint8_t> codes;
    for (std::size_t i = 0; i < count; ++i) {
        unsigned code = 0;
        for (std::size_t b = 0; b < width; ++b) {
            const std::size_t at = i * width + b;
            const auto byte = std::to_integer<unsigned>(bytes.at(at / 8));
            code |= (byte >> (at % 8) & 1u) << b;
        }
        codes.push_back(static_cast<std::uint8_t>(code));
    }
    return codes;
}

}  // namespace mx::tests
