// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "libmx/block/scale_swizzle.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/io/remote.hpp"
#include "libmx/io/strided.hpp"
#include "libmx/io/widen.hpp"
#include "libmx/quantized/coded_blocks.hpp"
#include "libmx/quantized/pairings.hpp"
#include "libmx/quantized/word_codes.hpp"

namespace mx::io {
namespace {

using tensor::dtype;
using code_values = std::array<float, 256>;

bool in_words(const pairing& p) {
    const code_array kind = p.layout->codes;
    return kind == code_array::int_words || kind == code_array::gptq_words ||
           kind == code_array::awq_words;
}

// The value of a code of words, or of a zero point of them. GPTQ may store zero points less one, in
// as many bits as codes.
code_values word_values(const pairing& p, bool zero_points) {
    const unsigned range = 1u << p.code_bits;
    code_values values{};
    for (unsigned code = 0; code < range; ++code) {
        const bool less_one = zero_points && p.zeros_less_one;
        values[code] = static_cast<float>(less_one ? (code + 1) % range : code);
        if (p.layout->codes == code_array::int_words)
            values[code] -= static_cast<float>(range >> 1);
    }
    return values;
}

// The values of bytes of `type`.
code_values byte_values(dtype type) {
    code_values values{};
    for (std::size_t code = 0; code < values.size(); ++code) {
        const std::byte byte{static_cast<unsigned char>(code)};
        widen(type, std::span(&byte, 1), 0, std::span(&values[code], 1));
    }
    return values;
}

code_values values_of(const pairing& p, dtype type) {
    if (in_words(p)) return word_values(p, false);
    if (p.element == nullptr) return byte_values(type);
    code_values values{};
    for (std::size_t code = 0; code < values.size(); ++code) {
        values[code] = format::decode(*p.element, static_cast<std::uint32_t>(code));
    }
    return values;
}

// Bytes are E8M0 codes here, but for MLX's E4M3.
dtype scale_type(const pairing& p, const tensor_info& scales) {
    if (p.layout->codes == code_array::table4) return dtype::f32;
    if (scales.type != dtype::u8) return scales.type;
    return p.layout->scales == scale_array::e4m3 ? dtype::f8_e4m3 : dtype::f8_e8m0;
}

// Whether every product is a float32 (as far as its range goes): 9 bits of significand at most
// times the 11 of F16, and nothing below 2^-149.
bool products_are_f32(const pairing& p, const tensor_info& scales) {
    const dtype type = scale_type(p, scales);
    return !p.tensor_scale && !p.input_channels && p.layout->divisor == 1 &&
           !p.layout->scale_divides && p.layout->codes != code_array::ggml_nvfp4 &&
           (type == dtype::f8_e8m0 || type == dtype::f8_e4m3 || type == dtype::f16);
}

// How codes and scales become values.
struct factors {
    code_values values{};
    shared_source scales;
    dtype scale_type = dtype::f32;
    bool divides = false;  // by the scales
    shared_source zeros;   // a byte for each scale; null: none
    code_values zero_values{};
    /// The scale of each column, of `scales_per_row`; empty: that of its block.
    std::vector<std::uint32_t> groups;
    std::uint64_t scales_per_row = 0;
};

// Values are (code - zero) * scale, exact in double, or (code - zero) / scale, rounded once.
template <class T>
class scaled_codes final : public coded_blocks<T> {
  public:
    scaled_codes(shared_source codes, int bits, const block::grid& g, factors by)
        : coded_blocks<T>(std::move(codes), bits, g), by_(std::move(by)) {}

  private:
    using run = typename coded_blocks<T>::run;

    void decode(const run& r, std::span<T> out) const override {
        const std::uint64_t each = by_.groups.empty() ? 1 : by_.scales_per_row;
        const std::uint64_t count = this->blocks_of(r) * each;
        std::vector<float> scales(static_cast<std::size_t>(count));
        std::vector<std::byte> scratch;
        read_f32(*by_.scales, by_.scale_type, r.block * each, scales, scratch);
        std::vector<float> zeros;  // empty: all are zero
        if (by_.zeros) {
            zeros.resize(static_cast<std::size_t>(count));
            const auto codes = read_run<std::uint8_t>(*by_.zeros, r.block * each, count);
            std::ranges::transform(codes, zeros.begin(),
                                   [this](std::uint8_t code) { return by_.zero_values[code]; });
        }
        this->for_each_block(
            r, out,
            [&](std::size_t block, std::span<const std::uint8_t> codes, std::span<T> values) {
                if (!by_.groups.empty()) {
                    const std::uint64_t lead = block == 0 ? r.lead : 0;
                    for (std::size_t i = 0; i < codes.size(); ++i) {
                        const std::size_t at = block * each + by_.groups[lead + i];
                        values[i] = value(codes[i], zeros.empty() ? 0 : zeros[at], scales[at]);
                    }
                    return;
                }
                const float zero = zeros.empty() ? 0 : zeros[block];
                for (std::size_t i = 0; i < codes.size(); ++i) {
                    values[i] = value(codes[i], zero, scales[block]);
                }
            });
    }

    T value(std::uint8_t code, float zero, float scale) const {
        // Without a zero point `zero` is +0, and -0 - 0 is -0.
        const auto of_code = static_cast<double>(by_.values[code]) - static_cast<double>(zero);
        const auto by_scale = static_cast<double>(scale);
        return static_cast<T>(by_.divides ? of_code / by_scale : of_code * by_scale);
    }

    factors by_;
};

// Values of T, each times or divided by a factor: element i has that at i / run, modulo their
// number. A product with a tensor scale is exact in double. The quotient of two numbers of 24 bits
// is never so close to a midpoint of float32 that rounding it to double before would matter.
template <class T>
class scaled_values final : public byte_source {
  public:
    scaled_values(shared_source values, std::vector<float> factors, std::uint64_t run, bool divides)
        : values_(std::move(values)), factors_(std::move(factors)), run_(run), divides_(divides) {}

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        read_whole_elements(
            offset, out, sizeof(double), [this](std::uint64_t first, std::span<std::byte> bytes) {
                std::vector<T> piece;
                while (!bytes.empty()) {
                    piece.resize(std::min(bytes.size() / sizeof(double), at_once));
                    values_->read(first * sizeof(T), std::as_writable_bytes(std::span(piece)));
                    scale(piece, first, bytes.data());
                    bytes = bytes.subspan(piece.size() * sizeof(double));
                    first += piece.size();
                }
            });
    }

    void expect(std::uint64_t offset, std::uint64_t bytes) const override {
        values_->expect(offset / sizeof(double) * sizeof(T), bytes / sizeof(double) * sizeof(T));
    }

  private:
    static constexpr std::size_t at_once = std::size_t{1} << 16;

    void scale(std::span<const T> values, std::uint64_t first, std::byte* to) const {
        std::uint64_t place = first % run_;
        auto at = static_cast<std::size_t>(first / run_ % factors_.size());
        for (const T value : values) {
            const auto x = static_cast<double>(value), by = static_cast<double>(factors_[at]);
            const double scaled = divides_ ? x / by : x * by;
            std::memcpy(to, &scaled, sizeof scaled);
            to += sizeof scaled;
            if (++place < run_) continue;
            place = 0;
            if (++at == factors_.size()) at = 0;
        }
    }

    shared_source values_;
    std::vector<float> factors_;
    std::uint64_t run_;
    bool divides_;
};

// Tiles read at a time: 32 KiB.
constexpr std::uint64_t tiles_at_once = 64;

// A part of `out` within one row of tiles.
void read_band(const byte_source& source, std::uint64_t rows, std::uint64_t cols,
               std::uint64_t offset, std::span<std::byte> out) {
    const std::uint64_t first_row = offset / cols;
    const std::uint64_t last_row = (offset + out.size() - 1) / cols;
    // Only the tiles around a part of one row are needed.
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
        // Rows of one matrix in one row of tiles share a read.
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

// bitsandbytes' scales where they are indices: table value * outer scale + offset, rounded to
// float32 after each step, as its kernels do.
shared_source nested_scales(const pairing& p, shared_source indices, shared_source outer,
                            std::vector<float> table) {
    return make_element_source(sizeof(float), [=, block = p.outer_block, offset = p.outer_offset](
                                                  std::uint64_t first, std::span<std::byte> bytes) {
        const std::uint64_t count = bytes.size() / sizeof(float);
        const auto codes = read_run<std::uint8_t>(*indices, first, count);
        const std::uint64_t begin = first / block;
        const auto scales = read_run<float>(*outer, begin, (first + count - 1) / block - begin + 1);
        for (std::size_t i = 0; i < count; ++i) {
            const float product =
                table[codes[i]] * scales[static_cast<std::size_t>((first + i) / block - begin)];
            const float scale = product + offset;
            std::memcpy(bytes.data() + i * sizeof(float), &scale, sizeof scale);
        }
    });
}

std::size_t bytes_of(dtype type) { return static_cast<std::size_t>(tensor::row_of(type).bits / 8); }

// The arrays of a pairing, each opened and in the order of the tensor.
class opener {
  public:
    opener(const pairing& p, std::span<const tensor_ref> arrays) : p_(p), arrays_(arrays) {}

    const tensor_info& info(std::size_t i) const { return arrays_[i].info(); }
    shared_source open(std::size_t i) const { return arrays_[i].file->open(arrays_[i].index); }
    // All bytes of an array that is known to be small.
    template <class T>
    std::vector<T> all(std::size_t i) const {
        return read_run<T>(*open(i), 0, info(i).elements);
    }

    shared_source codes() const {
        const tensor::shape& stored = info(p_.codes).shape;
        switch (p_.layout->codes) {
            case code_array::int_words:
                return codes_in_words(open(p_.codes), stored[1], p_.shape[1], p_.code_bits,
                                      word_order::stream);
            case code_array::gptq_words:
                return codes_in_words(transposed(open(p_.codes), stored, 4), stored[0], p_.shape[1],
                                      p_.code_bits, gptq_order());
            case code_array::awq_words:
                return transposed(codes_in_words(open(p_.codes), stored[1], p_.shape[0],
                                                 p_.code_bits, word_order::awq),
                                  {p_.shape[1], p_.shape[0]}, 1);
            case code_array::table4:
                return high_nibble_first(open(p_.codes));
            default:
                return packed_down() ? nibbles_down(open(p_.codes), p_.shape.back())
                                     : shared_source(open(p_.codes));
        }
    }

    int code_bits() const {
        const bool bytes = in_words(p_) || p_.layout->codes == code_array::table4 || packed_down();
        return bytes ? 8 : p_.code_bits;
    }

    shared_source scales() const {
        shared_source stored = open(p_.scales);
        if (p_.swizzled) {
            const std::uint64_t rows = p_.shape.size() > 1 ? p_.shape[p_.shape.size() - 2] : 1;
            return unswizzled(std::move(stored), rows, p_.grid.cols());
        }
        if (p_.outer_scales) {
            return nested_scales(p_, std::move(stored), open(*p_.outer_scales),
                                 all<float>(*p_.outer_table));
        }
        if (down_the_columns()) {
            return transposed(std::move(stored), info(p_.scales).shape,
                              bytes_of(info(p_.scales).type));
        }
        return stored;
    }

    shared_source zeros() const {
        if (!p_.zeros) return nullptr;
        const tensor_info& z = info(*p_.zeros);
        if (z.type == dtype::i8) return open(*p_.zeros);
        const std::uint64_t rows = p_.shape[0];
        if (!down_the_columns()) {
            const std::uint64_t parts = z.shape[1];
            return transposed(codes_in_words(transposed(open(*p_.zeros), z.shape, 4), z.shape[0],
                                             rows, p_.code_bits, word_order::stream),
                              {parts, rows}, 1);
        }
        const auto order =
            p_.layout->codes == code_array::awq_words ? word_order::awq : gptq_order();
        return transposed(codes_in_words(open(*p_.zeros), z.shape[1], rows, p_.code_bits, order),
                          {z.shape[0], rows}, 1);
    }

    std::vector<std::uint32_t> groups(std::uint64_t count) const {
        if (!p_.groups) return {};
        std::vector<std::uint32_t> groups = all<std::uint32_t>(*p_.groups);
        for (const std::uint32_t g : groups) {
            if (g < count) continue;
            input_error(fmt::format("{} has {}, but there are {} groups", info(*p_.groups).name,
                                    static_cast<std::int32_t>(g), count),
                        {info(p_.codes).file, p_.name, {}});
        }
        return groups;
    }

    // GPTQ and AWQ store a row of scales for each group of inputs.
    bool down_the_columns() const {
        return p_.layout->codes == code_array::gptq_words ||
               p_.layout->codes == code_array::awq_words;
    }

    // The numbers of an array of factors.
    std::vector<float> numbers(std::size_t i) const {
        std::vector<float> values(static_cast<std::size_t>(info(i).elements));
        std::vector<std::byte> scratch;
        read_f32(*open(i), info(i).type, 0, values, scratch);
        return values;
    }

    // Whether a byte holds two codes of a column.
    bool packed_down() const {
        return p_.down && p_.layout->codes == code_array::fp4 && info(p_.codes).type != dtype::f4;
    }

  private:
    word_order gptq_order() const { return p_.planes ? word_order::planes : word_order::stream; }

    const pairing& p_;
    std::span<const tensor_ref> arrays_;
};

}  // namespace

tensor_info logical_info(const pairing& p, std::span<const tensor_ref> arrays) {
    tensor_info t;
    t.name = p.name;
    t.type = products_are_f32(p, arrays[p.scales].info()) ? dtype::f32 : dtype::f64;
    t.shape = p.shape;
    t.elements = *tensor::element_count(p.shape);
    t.bytes = *tensor::byte_count(t.type, t.elements);
    t.file = arrays[p.codes].info().file;
    t.layout = p.layout->name;
    t.remark = p.why;
    t.sums_over = p.sums_over;
    // Scales that several tensors share count with the first of them.
    for (const std::size_t part : p.parts()) {
        const tensor_info& stored = arrays[part].info();
        t.stored_bytes += part == p.codes ? stored.file_bytes() : stored.occupied_bytes();
    }
    return t;
}

std::vector<tensor_scale> tensor_scales(const pairing& p, std::span<const tensor_ref> arrays) {
    constexpr std::uint64_t most = 1 << 16;
    const opener parts(p, arrays);
    std::vector<tensor_scale> all;
    const auto add = [&](std::size_t at, std::string_view use) {
        const tensor_info& info = parts.info(at);
        const bool numbers = tensor::row_of(info.type).to_f32 != tensor::widening::none;
        all.push_back({info.name, std::string(use), {}});
        if (numbers && info.elements <= most && !is_remote(info.file)) {
            all.back().values = parts.numbers(at);
        }
    };
    if (p.layout->block_cols == whole_matrix) add(p.scales, "multiplied");
    if (p.tensor_scale) add(*p.tensor_scale, p.divides ? "divided" : "multiplied");
    if (p.input_scale) add(*p.input_scale, "activations");
    return all;
}

shared_source open_block_scales(const pairing& p, std::span<const tensor_ref> arrays) {
    return opener(p, arrays).scales();
}

std::unique_ptr<byte_source> open_pairing(const pairing& p, std::span<const tensor_ref> arrays) {
    const opener parts(p, arrays);
    const std::uint64_t elements = *tensor::element_count(p.shape);
    if (p.layout->codes == code_array::ggml_nvfp4) {
        return std::make_unique<scaled_values<float>>(parts.open(p.codes),
                                                      parts.all<float>(p.scales), p.grid.block_cols,
                                                      p.layout->scale_divides);
    }
    const tensor_info& stored = parts.info(p.scales);
    const bool single = products_are_f32(p, stored);
    factors by;
    if (p.table) {
        std::ranges::copy(parts.all<float>(*p.table), by.values.begin());
    } else {
        by.values = values_of(p, parts.info(p.codes).type);
    }
    by.scales = parts.scales();
    by.scale_type = scale_type(p, stored);
    by.divides = p.layout->scale_divides;
    by.zeros = parts.zeros();
    if (by.zeros) {
        by.zero_values =
            parts.info(*p.zeros).type == dtype::i8 ? byte_values(dtype::i8) : word_values(p, true);
    }
    by.scales_per_row =
        stored.shape.size() == 2 ? stored.shape[parts.down_the_columns() ? 0 : 1] : 1;
    by.groups = parts.groups(by.scales_per_row);
    if (single) {
        return std::make_unique<scaled_codes<float>>(parts.codes(), parts.code_bits(), p.grid,
                                                     std::move(by));
    }
    std::unique_ptr<byte_source> values = std::make_unique<scaled_codes<double>>(
        parts.codes(), parts.code_bits(), p.grid, std::move(by));
    const auto scale = [&](std::vector<float> factors, std::uint64_t run, bool divides) {
        values = std::make_unique<scaled_values<double>>(shared_source(std::move(values)),
                                                         std::move(factors), run, divides);
    };
    if (p.layout->divisor != 1) scale({static_cast<float>(p.layout->divisor)}, elements, true);
    if (p.tensor_scale) {
        std::vector<float> of_matrices = parts.all<float>(*p.tensor_scale);
        const std::uint64_t run = elements / of_matrices.size();
        scale(std::move(of_matrices), run, p.divides);
    }
    if (p.input_channels) {
        std::uint64_t run = 1;
        for (std::size_t k = p.input_axis() + 1; k < p.shape.size(); ++k) run *= p.shape[k];
        scale(parts.numbers(*p.input_channels), run, false);
    }
    return values;
}

}  // namespace mx::io
