// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/sources.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace mx::io {
namespace {

class function_source final : public byte_source {
  public:
    function_source(read_function read, expect_function expect)
        : read_(std::move(read)), expect_(std::move(expect)) {}

    void read(std::uint64_t offset, std::span<std::byte> out) const override { read_(offset, out); }
    void expect(std::uint64_t offset, std::uint64_t bytes) const override {
        if (expect_) expect_(offset, bytes);
    }

  private:
    read_function read_;
    expect_function expect_;
};

}  // namespace

void byte_source::expect(std::uint64_t, std::uint64_t) const {}

std::unique_ptr<byte_source> make_source(read_function read, expect_function expect) {
    return std::make_unique<function_source>(std::move(read), std::move(expect));
}

std::unique_ptr<byte_source> make_element_source(std::size_t width, read_function read,
                                                 expect_function expect) {
    return make_source(
        [width, read = std::move(read)](std::uint64_t offset, std::span<std::byte> out) {
            read_whole_elements(offset, out, width, read);
        },
        std::move(expect));
}

std::unique_ptr<byte_source> file_window(shared_file file, std::uint64_t offset, std::uint64_t size,
                                         std::string tensor) {
    file->will_read(offset, size);
    return make_source(
        [=](std::uint64_t at, std::span<std::byte> out) {
            if (at > size || out.size() > size - at) {
                input_error("read past the end of the tensor",
                            {file->path(), tensor, offset + size});
            }
            file->read(offset + at, out, tensor);
        },
        [=](std::uint64_t at, std::uint64_t bytes) {
            if (at < size) file->expect(offset + at, std::min(bytes, size - at));
        });
}

std::unique_ptr<byte_source> source_window(shared_source source, std::uint64_t offset) {
    return make_source(
        [=](std::uint64_t at, std::span<std::byte> out) { source->read(offset + at, out); },
        [=](std::uint64_t at, std::uint64_t bytes) { source->expect(offset + at, bytes); });
}

std::unique_ptr<byte_source> byte_swapped(shared_source source, std::size_t width) {
    return make_element_source(
        width,
        [=](std::uint64_t first, std::span<std::byte> bytes) {
            source->read(first * width, bytes);
            for (std::size_t at = 0; at < bytes.size(); at += width) {
                std::reverse(bytes.data() + at, bytes.data() + at + width);
            }
        },
        [=](std::uint64_t offset, std::uint64_t bytes) { source->expect(offset, bytes); });
}

void read_whole_elements(std::uint64_t offset, std::span<std::byte> out, std::size_t width,
                         const read_function& read) {
    std::array<std::byte, 16> element{};
    const std::span cut(element.data(), width);
    while (!out.empty()) {
        const std::size_t skip = static_cast<std::size_t>(offset % width);
        std::size_t taken = 0;
        if (skip == 0 && out.size() >= width) {
            taken = out.size() / width * width;
            read(offset / width, out.first(taken));
        } else {
            taken = std::min(width - skip, out.size());
            read(offset / width, cut);
            std::memcpy(out.data(), cut.data() + skip, taken);
        }
        out = out.subspan(taken);
        offset += taken;
    }
}

}  // namespace mx::io
