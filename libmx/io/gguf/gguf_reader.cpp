// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "libmx/base/bits.hpp"
#include "libmx/io/gguf/gguf_header.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/io/sources.hpp"

namespace mx::io {
namespace {

// MXFP4 as ggml stores it: blocks of 17 bytes, a scale and 32 codes.
constexpr std::size_t block_elements = 32;
constexpr std::size_t block_bytes = 17;
constexpr std::uint64_t piece_blocks = 4096;

using bf16_block = std::array<std::uint16_t, block_elements>;

// All values, by scale byte and code. ggml keeps twice the value of a code as an integer, and
// multiplies it by half the scale in float32: exact down to 2^-128, and Inf when too large.
struct value_table {
    std::array<std::array<std::uint16_t, 16>, 256> rows{};

    value_table() {
        constexpr std::array<int, 16> doubled{0, 1,  2,  3,  4,  6,  8,  12,
                                              0, -1, -2, -3, -4, -6, -8, -12};
        for (int scale = 0; scale < 256; ++scale) {
            const float half = std::ldexp(1.0f, scale - 128);
            for (std::size_t code = 0; code < 16; ++code) {
                const float value = static_cast<float>(doubled[code]) * half;
                rows[static_cast<std::size_t>(scale)][code] =
                    static_cast<std::uint16_t>(base::bits_of(value) >> 16);
            }
        }
    }
};

// The low nibbles are the first half of the block, the high ones the second.
bf16_block decode(const std::byte* block) {
    static const value_table table;
    const auto& row = table.rows[std::to_integer<std::size_t>(block[0])];
    bf16_block values;
    for (std::size_t i = 0; i < block_elements / 2; ++i) {
        const auto byte = std::to_integer<std::size_t>(block[1 + i]);
        values[i] = row[byte & 15u];
        values[block_elements / 2 + i] = row[byte >> 4];
    }
    return values;
}

// The values of `blocks`, as BF16, which holds every one of them exactly. They are ggml's own
// (ggml-org/llama.cpp: block_mxfp4, kvalues_mxfp4 and ggml_e8m0_to_fp32_half): code 8 is +0, a
// product beyond float32 is Inf, and the scale byte 255 is 2^128 like any other, not NaN.
std::unique_ptr<byte_source> mxfp4_values(shared_source blocks) {
    return make_source(
        [=](std::uint64_t offset, std::span<std::byte> out) {
            std::vector<std::byte> stored;
            while (!out.empty()) {
                const std::uint64_t first = offset / sizeof(bf16_block);
                auto skip = static_cast<std::size_t>(offset % sizeof(bf16_block));
                const std::uint64_t wanted =
                    (skip + out.size() + sizeof(bf16_block) - 1) / sizeof(bf16_block);
                stored.resize(static_cast<std::size_t>(std::min(wanted, piece_blocks)) *
                              block_bytes);
                blocks->read(first * block_bytes, stored);
                for (std::size_t at = 0; at < stored.size(); at += block_bytes) {
                    const bf16_block values = decode(stored.data() + at);
                    const std::size_t count = std::min(sizeof values - skip, out.size());
                    std::memcpy(out.data(), reinterpret_cast<const char*>(values.data()) + skip,
                                count);
                    out = out.subspan(count);
                    offset += count;
                    skip = 0;
                }
            }
        },
        [=](std::uint64_t offset, std::uint64_t bytes) {
            blocks->expect(offset / sizeof(bf16_block) * block_bytes,
                           bytes / sizeof(bf16_block) * block_bytes + block_bytes);
        });
}

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
        if (tensor.type_id == gguf_mxfp4_type) return mxfp4_values(std::move(stored));
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
        if (tensor.type != nullptr && tensor.type->read_as) {
            info.type = *tensor.type->read_as;
            info.bytes = *tensor::byte_count(info.type, info.elements);
            if (tensor.type_id == gguf_mxfp4_type) {
                info.layout = tensor.type->name;
                info.remark = "decoded from GGUF blocks of 32, each with an E8M0 scale";
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
