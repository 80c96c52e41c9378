// SPDX-License-Identifier: Apache-2.0
#include "libmx/llm/token_file.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "libmx/base/status.hpp"
#include "libmx/io/reader.hpp"

namespace mx::llm {
namespace {

constexpr std::uint64_t most_tokens = std::uint64_t{1} << 28;

template <typename T>
std::vector<std::uint32_t> converted(const std::vector<std::byte>& bytes, const std::string& path) {
    std::vector<std::uint32_t> ids(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < ids.size(); ++i) {
        T x;
        std::memcpy(&x, bytes.data() + i * sizeof(T), sizeof(T));
        if (!std::in_range<std::uint32_t>(x)) {
            throw base::error(base::error_kind::input,
                              fmt::format("token {} is {}, which is no id", i, x), {path, {}, {}});
        }
        ids[i] = static_cast<std::uint32_t>(x);
    }
    return ids;
}

}  // namespace

std::vector<std::uint32_t> read_tokens(const std::string& path) {
    const std::unique_ptr<io::reader> file = io::open_model(path);
    const auto fail = [&](const std::string& message) {
        throw base::error(base::error_kind::input, message, {path, {}, {}});
    };
    if (file->tensors().size() != 1) {
        fail(fmt::format("has {} arrays; tokens are one", file->tensors().size()));
    }
    const io::tensor_info& info = file->tensors().front();
    if (info.elements > most_tokens) fail(fmt::format("has more than {} tokens", most_tokens));
    std::vector<std::byte> bytes(static_cast<std::size_t>(info.bytes));
    file->open(0)->read(0, bytes);
    switch (info.type) {
        case tensor::dtype::u16:
            return converted<std::uint16_t>(bytes, path);
        case tensor::dtype::u32:
            return converted<std::uint32_t>(bytes, path);
        case tensor::dtype::i32:
            return converted<std::int32_t>(bytes, path);
        case tensor::dtype::i64:
            return converted<std::int64_t>(bytes, path);
        default:
            fail(fmt::format("has elements of {}; tokens are U16, U32, I32 or I64",
                             tensor::row_of(info.type).name));
    }
    return {};
}

void require_ids_below(std::size_t vocabulary, std::span<const std::uint32_t> ids,
                       const std::string& file) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] < vocabulary) continue;
        base::refuse(fmt::format("token {} is {}, and the model has a vocabulary of {}: the ids "
                                 "are of another tokenizer",
                                 i, ids[i], vocabulary),
                     {file, {}, {}});
    }
}

}  // namespace mx::llm
