// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "libmx/block/scale_swizzle.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/io/quantized/coded_blocks.hpp"
#include "libmx/io/quantized/pairings.hpp"
#include "libmx/io/widen.hpp"

namespace mx::io {
namespace {

using tensor::dtype;
using code_values = std::array<float, 256>;

// What the codes of `type` stand for; `element` names those of packed bytes.
code_values values_of(const pairing& p, dtype type) {
    const format::element_format* const element = p.element;
    code_values values{};
    if (p.layout->codes == code_array::int_words) {
        for (int code = 0; code < 1 << p.code_bits; ++code) {
            values[static_cast<std::size_t>(code)] =
                static_cast<float>(code - (1 << (p.code_bits - 1)));
        }
        return values;
    }
    for (std::size_t code = 0; code < values.size(); ++code) {
        if (element != nullptr) {
            values[code] = format::decode(*element, static_cast<std::uint32_t>(code));
        } else {
            const std::byte byte{static_cast<unsigned char>(code)};
            widen(type, std::span(&byte, 1), 0, std::span(&values[code], 1));
        }
    }
    return values;
}

// Bytes are E8M0 codes here.
dtype scale_type(const tensor_info& scales) {
    return scales.type == dtype::u8 ? dtype::f8_e8m0 : scales.type;
}

// Whether every product is a float32 (as far as its range goes): 8 bits of significand at most
// times the 11 of F16, and nothing below 2^-149.
bool products_are_f32(const pairing& p, const tensor_info& scales) {
    const dtype type = scale_type(scales);
    return !p.tensor_scale &&
           (type == dtype::f8_e8m0 || type == dtype::f8_e4m3 || type == dtype::f16);
}

// Values are code * scale * factor, exact in double, or code * scale / divisor, rounded once: the
// quotient of two numbers of 24 bits is never so close to a midpoint of float32 that rounding it to
// double before would matter.
template <class T>
class scaled_codes final : public coded_blocks<T> {
  public:
    scaled_codes(const pairing& p, shared_source codes, const code_values& values,
                 shared_source scales, dtype type, double tensor_scale)
        : coded_blocks<T>(std::move(codes), p.code_bits, p.grid),
          values_(values),
          scales_(std::move(scales)),
          type_(type),
          tensor_scale_(tensor_scale),
          divides_(p.divides) {}

  private:
    using run = typename coded_blocks<T>::run;

    void decode(const run& r, std::span<T> out) const override {
        std::vector<float> scales(static_cast<std::size_t>(this->blocks_of(r)));
        std::vector<std::byte> scratch;
        read_f32(*scales_, type_, r.block, scales, scratch);
        this->for_each_block(
            r, out,
            [&](std::size_t block, std::span<const std::uint8_t> codes, std::span<T> values) {
                const auto scale = static_cast<double>(scales[block]);
                if (divides_) {
                    for (std::size_t i = 0; i < codes.size(); ++i) {
                        const double product = static_cast<double>(values_[codes[i]]) * scale;
                        values[i] = static_cast<T>(product / tensor_scale_);
                    }
                    return;
                }
                const double factor = scale * tensor_scale_;
                for (std::size_t i = 0; i < codes.size(); ++i) {
                    values[i] = static_cast<T>(static_cast<double>(values_[codes[i]]) * factor);
                }
            });
    }

    code_values values_;
    shared_source scales_;
    dtype type_;
    double tensor_scale_;
    bool divides_;
};

// Tiles read at a time: 32 KiB.
constexpr std::uint64_t tiles_at_once = 64;

// A part of `out` that lies in one row of tiles.
void read_band(const byte_source& source, std::uint64_t rows, std::uint64_t cols,
               std::uint64_t offset, std::span<std::byte> out) {
    const std::uint64_t first_row = offset / cols;
    const std::uint64_t last_row = (offset + out.size() - 1) / cols;
    // A part of one row needs the tiles around it only.
    const bool one = first_row == last_row;
    const std::uint64_t begin = one ? offset % cols / block::swizzle_cols : 0;
    const std::uint64_t end = one ? (offset + out.size() - 1) % cols / block::swizzle_cols + 1
                                  : block::swizzle_tiles(cols, block::swizzle_cols);
    const std::uint64_t matrix = first_row / rows;
    const std::uint64_t start = matrix * block::swizzled_bytes(rows, cols) +
                                first_row % rows / block::swizzle_rows *
                                    block::swizzle_tiles(cols, block::swizzle_cols) *
                                    block::swizzle_tile;
    std::vector<std::byte> tiles;
    for (std::uint64_t tile = begin; tile < end; tile += tiles_at_once) {
        const std::uint64_t count = std::min(tiles_at_once, end - tile);
        tiles.resize(static_cast<std::size_t>(count * block::swizzle_tile));
        source.read(start + tile * block::swizzle_tile, tiles);
        const std::uint64_t left = tile * block::swizzle_cols;
        const std::uint64_t right = std::min(cols, left + count * block::swizzle_cols);
        for (std::uint64_t row = first_row; row <= last_row; ++row) {
            const std::uint64_t from = std::max(row * cols + left, offset);
            const std::uint64_t to = std::min(row * cols + right, offset + out.size());
            for (std::uint64_t at = from; at < to; ++at) {
                const std::uint64_t col = at - row * cols - left;
                const std::uint64_t place = col / block::swizzle_cols * block::swizzle_tile +
                                            block::place_in_tile(row % rows % block::swizzle_rows,
                                                                 col % block::swizzle_cols);
                out[static_cast<std::size_t>(at - offset)] = tiles[place];
            }
        }
    }
}

// `source` holds one or more matrices of rows x cols one-byte scales, each in the 128x4 order of
// block/scale_swizzle.hpp; read in C order, without the padding.
shared_source unswizzled(shared_source source, std::uint64_t rows, std::uint64_t cols) {
    return make_source([=](std::uint64_t offset, std::span<std::byte> out) {
        // Rows of one matrix that lie in one row of tiles share a read.
        while (!out.empty()) {
            const std::uint64_t row = offset / cols;  // counted over all matrices
            const std::uint64_t in_matrix = row % rows;
            const std::uint64_t band_end =
                row - in_matrix % block::swizzle_rows +
                std::min(block::swizzle_rows,
                         rows - in_matrix / block::swizzle_rows * block::swizzle_rows);
            const auto count = static_cast<std::size_t>(
                std::min<std::uint64_t>(out.size(), band_end * cols - offset));
            read_band(*source, rows, cols, offset, out.first(count));
            offset += count;
            out = out.subspan(count);
        }
    });
}

}  // namespace

tensor_info logical_info(const pairing& p, std::span<const tensor_ref> arrays) {
    const tensor_info& codes = arrays[p.codes].info();
    const tensor_info& scales = arrays[p.scales].info();
    tensor_info t;
    t.name = p.name;
    t.type = products_are_f32(p, scales) ? dtype::f32 : dtype::f64;
    t.shape = p.shape;
    t.elements = *tensor::element_count(p.shape);
    t.bytes = *tensor::byte_count(t.type, t.elements);
    t.file = codes.file;
    t.layout = p.layout->name;
    t.remark = p.why;
    t.stored_bytes = codes.bytes + scales.bytes;
    if (p.tensor_scale) t.stored_bytes += arrays[*p.tensor_scale].info().bytes;
    return t;
}

std::unique_ptr<byte_source> open_pairing(const pairing& p, std::span<const tensor_ref> arrays) {
    const auto open = [&](std::size_t i) {
        return shared_source(arrays[i].file->open(arrays[i].index));
    };
    const tensor_info& codes = arrays[p.codes].info();
    const tensor_info& stored = arrays[p.scales].info();
    shared_source scales = open(p.scales);
    if (p.swizzled) {
        const std::uint64_t rows = p.shape.size() > 1 ? p.shape[p.shape.size() - 2] : 1;
        scales = unswizzled(std::move(scales), rows, p.grid.cols());
    }
    double tensor_scale = 1;
    if (p.tensor_scale) {
        float value = 1;
        open(*p.tensor_scale)->read(0, std::as_writable_bytes(std::span(&value, 1)));
        tensor_scale = static_cast<double>(value);
    }
    const code_values values = values_of(p, codes.type);
    const auto make = [&]<class T>(T) -> std::unique_ptr<byte_source> {
        return std::make_unique<scaled_codes<T>>(p, open(p.codes), values, std::move(scales),
                                                 scale_type(stored), tensor_scale);
    };
    return products_are_f32(p, stored) ? make(float{}) : make(double{});
}

}  // namespace mx::io
