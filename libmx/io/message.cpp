// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/message.hpp"

#include <cstring>

#include "libmx/base/status.hpp"

namespace mx::io {
namespace {

[[noreturn]] void fail() {
    throw base::error(base::error_kind::input, "the answer of the reading process is damaged");
}

}  // namespace

message_writer& message_writer::number(std::uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
}

message_writer& message_writer::text(std::string_view value) {
    number(value.size());
    bytes_.append(value);
    return *this;
}

std::uint64_t message_reader::number() {
    std::uint64_t value = 0;
    if (rest_.size() < sizeof value) fail();
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
}

std::string message_reader::text() {
    const std::uint64_t length = number();
    if (length > rest_.size()) fail();
    std::string value(rest_.substr(0, static_cast<std::size_t>(length)));
    rest_.remove_prefix(value.size());
    return value;
}

std::uint64_t message_reader::count() {
    const std::uint64_t value = number();
    if (value > rest_.size() / sizeof value) fail();
    return value;
}

}  // namespace mx::io
