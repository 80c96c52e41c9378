// SPDX-License-Identifier: Apache-2.0
// A file of vectors: metadata and tensors. All sizes are checked before anything is read.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/io/reader.hpp"

namespace mx::conformance::verify {

/// A view of an opened file whose __metadata__ describes its contents. Missing or malformed parts
/// are base::error (input), naming the file and the tensor.
class vector_file {
  public:
    /// `file` must outlive the view; `path` is the name used in messages.
    vector_file(const io::reader& file, std::string path);

    const std::string& path() const { return path_; }
    const std::vector<io::tensor_info>& tensors() const { return file_->tensors(); }

    /// The metadata entry `key`, or nullptr.
    const std::string* find(std::string_view key) const;
    /// The metadata entry `key`. Throws base::error (input) if it is missing.
    const std::string& at(std::string_view key) const;

    bool has(std::string_view tensor) const;
    /// The header's entry of `tensor`.
    const io::tensor_info& info(std::string_view tensor) const;

    /// The values of a tensor of this dtype with this number of elements; any_count accepts any
    /// number. 32-bit values are returned as bits.
    auto u8(std::string_view tensor, std::uint64_t elements) const {
        return read<std::uint8_t>(tensor, tensor::dtype::u8, elements);
    }
    auto u16(std::string_view tensor, std::uint64_t elements) const {
        return read<std::uint16_t>(tensor, tensor::dtype::u16, elements);
    }
    auto f16(std::string_view tensor, std::uint64_t elements) const {
        return read<std::uint16_t>(tensor, tensor::dtype::f16, elements);
    }
    auto u32(std::string_view tensor, std::uint64_t elements) const {
        return read<std::uint32_t>(tensor, tensor::dtype::u32, elements);
    }
    auto f32(std::string_view tensor, std::uint64_t elements) const {
        return read<std::uint32_t>(tensor, tensor::dtype::f32, elements);
    }
    /// The same as numbers.
    auto floats(std::string_view tensor, std::uint64_t elements) const {
        return read<float>(tensor, tensor::dtype::f32, elements);
    }
    /// Codes or bit patterns of `bits` bits each, stored in the narrowest of U8, U16 and U32.
    std::vector<std::uint32_t> words(std::string_view tensor, int bits,
                                     std::uint64_t elements) const;
    static constexpr std::uint64_t any_count = ~std::uint64_t{0};

    /// Throws base::error (input) about this file; the message is formatted with fmt::format.
    template <typename... Values>
    [[noreturn]] void fail(fmt::format_string<Values...> text, Values&&... values) const {
        fail_in({}, text, std::forward<Values>(values)...);
    }
    /// The same for one of its tensors.
    template <typename... Values>
    [[noreturn]] void fail_in(std::string_view tensor, fmt::format_string<Values...> text,
                              Values&&... values) const {
        throw base::error(base::error_kind::input,
                          fmt::format(text, std::forward<Values>(values)...),
                          {path_, std::string(tensor), {}});
    }

  private:
    template <typename T>
    std::vector<T> read(std::string_view tensor, tensor::dtype type, std::uint64_t elements) const;

    const io::reader* file_;
    std::string path_;
};

/// The parts of `text` between separators, without empty parts.
std::vector<std::string_view> words_of(std::string_view text, char separator);

}  // namespace mx::conformance::verify
