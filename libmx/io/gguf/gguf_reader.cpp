// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "libmx/base/bits.hpp"
#include "libmx/io/gguf/gguf_header.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/sources.hpp"

namespace mx::io {
namespace {

constexpr std::uint64_t gguf_piece_bytes = 64 << 10;  // stored, decoded at a time
constexpr std::size_t longest_block = 256;            // elements

// The values of `blocks`: F32, or BF16 if each of them is one.
class block_values final : public byte_source {
  public:
    block_values(shared_source blocks, const gguf_type& type, bool big_endian)
        : blocks_(std::move(blocks)),
          type_(&type),
          big_endian_(big_endian),
          width_(static_cast<std::uint64_t>(tensor::row_of(*type.read_as).bits / 8)),
          decoded_(type.block_elements * width_) {}

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        std::vector<std::byte> stored;
        while (!out.empty()) {
            const std::uint64_t first = offset / decoded_;
            auto skip = static_cast<std::size_t>(offset % decoded_);
            const std::uint64_t needed = (skip + out.size() + decoded_ - 1) / decoded_;
            const std::uint64_t most = gguf_piece_bytes / type_->block_bytes;
            stored.resize(static_cast<std::size_t>(std::min(needed, most) * type_->block_bytes));
            blocks_->read(first * type_->block_bytes, stored);
            for (std::size_t at = 0; at < stored.size(); at += type_->block_bytes) {
                const std::size_t count = std::min<std::size_t>(decoded_ - skip, out.size());
                decode(stored.data() + at, skip, out.first(count));
                out = out.subspan(count);
                offset += count;
                skip = 0;
            }
        }
    }

    void expect(std::uint64_t offset, std::uint64_t bytes) const override {
        blocks_->expect(offset / decoded_ * type_->block_bytes,
                        (bytes / decoded_ + 1) * type_->block_bytes);
    }

  private:
    // Bytes [skip, skip + out.size()) of a block's values.
    void decode(const std::byte* block, std::size_t skip, std::span<std::byte> out) const {
        std::array<float, longest_block> values{};
        type_->decode({block, big_endian_}, std::span(values).first(type_->block_elements));
        if (type_->read_as == tensor::dtype::f32) {
            std::memcpy(out.data(), reinterpret_cast<const std::byte*>(values.data()) + skip,
                        out.size());
            return;
        }
        std::array<std::uint16_t, longest_block> upper{};
        for (std::size_t i = 0; i < type_->block_elements; ++i) {
            upper[i] = static_cast<std::uint16_t>(base::bits_of(values[i]) >> 16);
        }
        std::memcpy(out.data(), reinterpret_cast<const std::byte*>(upper.data()) + skip,
                    out.size());
    }

    shared_source blocks_;
    const gguf_type* type_;
    bool big_endian_;
    std::uint64_t width_, decoded_;  // bytes of a value, and of a block's values
};

class gguf_reader final : public file_reader {
  public:
    explicit gguf_reader(shared_file file)
        : file_reader(std::move(file)), header_(read_gguf_header(file_)) {
        for (const gguf_tensor& tensor : header_.tensors) tensors_.push_back(describe(tensor));
        metadata_ = std::move(header_.metadata);
    }

    std::unique_ptr<byte_source> open(std::size_t index) const override {
        const tensor_info& info = tensors_.at(index);
        const gguf_tensor& tensor = header_.tensors[index];
        if (!info.note.empty()) input_error(info.note, {info.file, info.name, tensor.begin});
        auto stored = file_window(file_, tensor.begin, tensor.bytes, info.name);
        if (tensor.type->decode != nullptr) {
            return std::make_unique<block_values>(std::move(stored), *tensor.type,
                                                  header_.big_endian);
        }
        const std::size_t width = tensor.type->block_bytes;
        if (!header_.big_endian || width == 1) return stored;
        return byte_swapped(std::move(stored), width);
    }

  private:
    tensor_info describe(const gguf_tensor& tensor) const {
        tensor_info info;
        info.name = tensor.name;
        info.file = file_->path();
        info.shape = tensor.shape;
        info.elements = tensor.elements;
        // Convolutions are summed over more than ne0; tables of tokens are looked up.
        const int axes = static_cast<int>(info.shape.size());
        if (axes == 3 && info.name.find("conv") != std::string::npos) {
            info.sums_over = {1, axes, "GGUF: ggml_conv_1d multiplies along ne0 and ne1"};
        } else if ((axes == 2 || axes == 3) && info.name.find("_embd") == std::string::npos) {
            info.sums_over = {axes - 1, axes, "GGUF: ggml multiplies along ne0, the last axis"};
        }
        if (tensor.type != nullptr && tensor.type->read_as) {
            info.type = *tensor.type->read_as;
            info.bytes = *tensor::byte_count(info.type, info.elements);
            if (tensor.type->decode != nullptr) {
                info.layout = tensor.type->name;
                info.remark = fmt::format("decoded from ggml's {} blocks of {}", tensor.type->name,
                                          tensor.type->block_elements);
                info.stored_bytes = tensor.bytes;
            }
        } else {
            info.type = tensor::dtype::other;
            info.bytes = tensor.bytes;
            info.note = tensor.type != nullptr
                            ? fmt::format("ggml's {} blocks are not decoded", tensor.type->name)
                            : fmt::format("unknown ggml type {}", tensor.type_id);
        }
        return info;
    }

    gguf_header header_;
};

}  // namespace

bool looks_like_gguf(const file_probe& probe) { return probe.head.starts_with("GGUF"); }

std::unique_ptr<reader> open_gguf(shared_file file, const open_options&) {
    return std::make_unique<gguf_reader>(std::move(file));
}

}  // namespace mx::io
