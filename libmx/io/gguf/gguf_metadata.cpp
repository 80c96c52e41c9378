// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/gguf/gguf_metadata.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <string_view>

namespace mx::io {
namespace {

// Chat templates take some ten thousand bytes.
constexpr std::uint64_t text_limit = 64 << 10;
constexpr std::uint64_t shown_elements = 4;
constexpr std::uint64_t shown_bytes = 64;
constexpr int depth_limit = 8;

enum value_type : std::uint32_t { type_uint32 = 4, type_string = 8, type_array = 9, types = 13 };

// Bytes of one value by type; 0 where that depends on the value.
constexpr std::array<std::uint64_t, types> widths{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr std::array<std::string_view, types> names{
    "UINT8", "INT8",   "UINT16", "INT16",  "UINT32", "INT32",  "FLOAT32",
    "BOOL",  "STRING", "ARRAY",  "UINT64", "INT64",  "FLOAT64"};

std::uint32_t read_type(file_cursor& at) {
    const auto type = at.number<std::uint32_t>();
    if (type >= types) at.fail(fmt::format("unknown type {} of a metadata value", type));
    return type;
}

std::string scalar(file_cursor& at, std::uint32_t type) {
    switch (type) {
        case 0:
            return fmt::format("{}", at.number<std::uint8_t>());
        case 1:
            return fmt::format("{}", static_cast<std::int8_t>(at.number<std::uint8_t>()));
        case 2:
            return fmt::format("{}", at.number<std::uint16_t>());
        case 3:
            return fmt::format("{}", static_cast<std::int16_t>(at.number<std::uint16_t>()));
        case 4:
            return fmt::format("{}", at.number<std::uint32_t>());
        case 5:
            return fmt::format("{}", static_cast<std::int32_t>(at.number<std::uint32_t>()));
        case 6:
            return fmt::format("{}", std::bit_cast<float>(at.number<std::uint32_t>()));
        case 7:
            return at.number<std::uint8_t>() != 0 ? "true" : "false";
        case 10:
            return fmt::format("{}", at.number<std::uint64_t>());
        case 11:
            return fmt::format("{}", static_cast<std::int64_t>(at.number<std::uint64_t>()));
        default:
            return fmt::format("{}", std::bit_cast<double>(at.number<std::uint64_t>()));
    }
}

// A text of any length, of which `limit` bytes are kept.
std::string shortened(file_cursor& at, std::uint64_t limit) {
    const auto length = at.number<std::uint64_t>();
    if (length <= limit) return at.text(length);
    at.skip(length);
    return fmt::format("({} bytes of text)", length);
}

std::string array(file_cursor& at, int depth) {
    if (depth == depth_limit) {
        at.fail(fmt::format("metadata arrays are nested more than {} deep", depth_limit));
    }
    const std::uint32_t type = read_type(at);
    const auto count = at.number<std::uint64_t>();
    // The least that an element takes: a string its length, an array its type and count.
    const std::uint64_t least = type == type_string ? 8 : type == type_array ? 12 : widths[type];
    if (count > at.remaining() / least) {
        at.fail(fmt::format("an array of {} {} does not fit into the file; it may be cut short",
                            count, names[type]));
    }
    std::string shown;
    for (std::uint64_t i = 0; i < count; ++i) {
        if (i >= shown_elements && widths[type] != 0) {
            at.skip((count - i) * widths[type]);
            break;
        }
        std::string element = type == type_array    ? array(at, depth + 1)
                              : type == type_string ? shortened(at, shown_bytes)
                                                    : scalar(at, type);
        if (i < shown_elements) shown += (i == 0 ? "" : ", ") + element;
    }
    if (count > shown_elements) shown += ", ...";
    return fmt::format("[{}] ({} {})", shown, count, names[type]);
}

}  // namespace

gguf_value read_gguf_value(file_cursor& at) {
    const std::uint32_t type = read_type(at);
    if (type == type_uint32) {
        const auto number = at.number<std::uint32_t>();
        return {fmt::format("{}", number), number};
    }
    if (type == type_string) return {shortened(at, text_limit), {}};
    return {type == type_array ? array(at, 0) : scalar(at, type), {}};
}

std::string read_gguf_text(file_cursor& at, std::uint64_t limit, const char* what) {
    const auto length = at.number<std::uint64_t>();
    if (length > limit) {
        at.fail(fmt::format("{} of {} bytes; at most {} are allowed", what, length, limit));
    }
    return at.text(length);
}

}  // namespace mx::io
