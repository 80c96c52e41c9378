// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/sources.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "libmx/base/status.hpp"

namespace mx::io {
namespace {

class window_of_file final : public byte_source {
  public:
    window_of_file(shared_file file, std::uint64_t offset, std::uint64_t size, std::string tensor)
        : file_(std::move(file)), offset_(offset), size_(size), tensor_(std::move(tensor)) {}

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        if (offset > size_ || out.size() > size_ - offset) {
            throw base::error(base::error_kind::input, "read past the end of the tensor",
                              {file_->path(), tensor_, offset_ + size_});
        }
        file_->read(offset_ + offset, out, tensor_);
    }

    void expect(std::uint64_t offset, std::uint64_t bytes) const override {
        if (offset < size_) file_->expect(offset_ + offset, std::min(bytes, size_ - offset));
    }

  private:
    shared_file file_;
    std::uint64_t offset_;
    std::uint64_t size_;
    std::string tensor_;
};

class window_of_source final : public byte_source {
  public:
    window_of_source(shared_source source, std::uint64_t offset)
        : source_(std::move(source)), offset_(offset) {}

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        source_->read(offset_ + offset, out);
    }

    void expect(std::uint64_t offset, std::uint64_t bytes) const override {
        source_->expect(offset_ + offset, bytes);
    }

  private:
    shared_source source_;
    std::uint64_t offset_;
};

class swapped final : public byte_source {
  public:
    swapped(shared_source source, std::size_t width) : source_(std::move(source)), width_(width) {}

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        read_whole_elements(offset, out, width_,
                            [this](std::uint64_t first, std::span<std::byte> bytes) {
                                source_->read(first * width_, bytes);
                                for (std::size_t at = 0; at < bytes.size(); at += width_) {
                                    std::reverse(bytes.data() + at, bytes.data() + at + width_);
                                }
                            });
    }

    void expect(std::uint64_t offset, std::uint64_t bytes) const override {
        source_->expect(offset, bytes);
    }

  private:
    shared_source source_;
    std::size_t width_;
};

}  // namespace

void byte_source::expect(std::uint64_t, std::uint64_t) const {}

std::unique_ptr<byte_source> file_window(shared_file file, std::uint64_t offset, std::uint64_t size,
                                         std::string tensor) {
    return std::make_unique<window_of_file>(std::move(file), offset, size, std::move(tensor));
}

std::unique_ptr<byte_source> source_window(shared_source source, std::uint64_t offset) {
    return std::make_unique<window_of_source>(std::move(source), offset);
}

std::unique_ptr<byte_source> byte_swapped(shared_source source, std::size_t width) {
    return std::make_unique<swapped>(std::move(source), width);
}

void read_whole_elements(std::uint64_t offset, std::span<std::byte> out, std::size_t width,
                         const std::function<void(std::uint64_t, std::span<std::byte>)>& read) {
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
