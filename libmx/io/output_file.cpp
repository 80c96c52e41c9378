// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "libmx/io/staged_output.hpp"
#include "libmx/io/writer.hpp"

namespace mx::io {
namespace {
constexpr std::size_t buffer_bytes = 1 << 20;
}

struct output_file::impl {
    explicit impl(const std::string& path) : stage(path) {}

    staged_output stage;
    std::string buffer;          // appended, not yet written
    std::uint64_t appended = 0;  // bytes before the buffer
};

output_file::output_file(const std::string& path) : impl_(std::make_unique<impl>(path)) {}
output_file::~output_file() = default;
output_file::output_file(output_file&&) noexcept = default;
output_file& output_file::operator=(output_file&&) noexcept = default;

void output_file::append(std::string_view text) {
    impl_->buffer += text;
    if (impl_->buffer.size() < buffer_bytes) return;
    write_at(impl_->appended, std::as_bytes(std::span(impl_->buffer)));
    impl_->appended += impl_->buffer.size();
    impl_->buffer.clear();
}

void output_file::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    impl_->stage.write_at(offset, bytes);
}

void output_file::commit() { impl_->stage.commit(impl_->appended, impl_->buffer); }

}  // namespace mx::io
