// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/packed_source.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/io/quantized/coded_blocks.hpp"
#include "libmx/transform/rotation.hpp"

namespace mx::engine {
namespace {

class packed_source final : public io::coded_blocks<float> {
  public:
    packed_source(const codec::block_params& params, int bits, const block::grid& g,
                  io::shared_source codes, io::shared_source scales, io::shared_source offsets)
        : coded_blocks(std::move(codes), bits, g),
          params_(params),
          scales_(std::move(scales)),
          offsets_(std::move(offsets)) {}

  private:
    void decode(const run& r, std::span<float> out) const override {
        const std::uint64_t count = blocks_of(r);
        const std::vector<float> scales = read_scales(r.block, count);
        std::vector<std::uint16_t> offsets(static_cast<std::size_t>(count));
        if (offsets_) offsets = io::read_run<std::uint16_t>(*offsets_, r.block, count);
        for_each_block(
            r, out,
            [&](std::size_t block, std::span<const std::uint8_t> codes, std::span<float> values) {
                codec::dequantize_block(params_, scales[block], offsets[block], codes, values);
            });
    }

    // Scales as numbers, whatever holds them.
    std::vector<float> read_scales(std::uint64_t first, std::uint64_t count) const {
        const bool has_codes = params_.scale_format->has_codes() &&
                               params_.by->storage.value == codec::scale_storage::code;
        if (!has_codes) return io::read_run<float>(*scales_, first, count);
        std::vector<float> scales;
        for (const std::uint8_t code : io::read_run<std::uint8_t>(*scales_, first, count)) {
            scales.push_back(format::decode_scale(*params_.scale_format, code));
        }
        return scales;
    }

    codec::block_params params_;
    io::shared_source scales_, offsets_;
};

// The values before they were rotated, from rotated ones. Groups are turned back whole, however
// little of them is asked for.
class unrotated_source final : public io::byte_source {
  public:
    unrotated_source(io::shared_source rotated, const transform::rotation& how,
                     const block::grid& g)
        : rotated_(std::move(rotated)), how_(how), over_(g.over), columns_(g.joint_rows > 1) {}

    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        io::read_whole_elements(
            offset, out, sizeof(float), [this](std::uint64_t first, std::span<std::byte> bytes) {
                while (!bytes.empty()) {
                    const std::uint64_t count =
                        columns_ ? fill_rows(first, bytes) : fill_row(first, bytes);
                    bytes = bytes.subspan(count * sizeof(float));
                    first += count;
                }
            });
    }

  private:
    static constexpr std::uint64_t widest = 4096;  // columns turned back at a time

    // A part of one row. Returns how many elements it filled.
    std::uint64_t fill_row(std::uint64_t first, std::span<std::byte> bytes) const {
        const std::uint64_t col = first % over_.cols;
        const std::uint64_t count =
            std::min({bytes.size() / sizeof(float), over_.cols - col, widest});
        const auto group = static_cast<std::uint64_t>(how_.size);
        const std::uint64_t begin = col / group * group;
        const std::uint64_t end = std::min(over_.cols, (col + count + group - 1) / group * group);
        std::vector<float> x(static_cast<std::size_t>(end - begin));
        rotated_->read((first - col + begin) * sizeof(float), std::as_writable_bytes(std::span(x)));
        transform::rotate_back(how_, {x.data(), 1, x.size(), x.size()}, transform::run::row);
        std::memcpy(bytes.data(), x.data() + (col - begin), count * sizeof(float));
        return count;
    }

    // What is wanted of one group of rows, in strips of columns.
    std::uint64_t fill_rows(std::uint64_t first, std::span<std::byte> bytes) const {
        const auto group = static_cast<std::uint64_t>(how_.size);
        const std::uint64_t row = first / over_.cols;
        const std::uint64_t in_matrix = row % over_.rows;
        const std::uint64_t top = row - in_matrix % group;
        const std::uint64_t height = std::min(group, over_.rows - in_matrix / group * group);
        const std::uint64_t end =
            std::min(first + bytes.size() / sizeof(float), (top + height) * over_.cols);
        const bool one_row = (end - 1) / over_.cols == row;
        const std::uint64_t left = one_row ? first % over_.cols : 0;
        const std::uint64_t right = one_row ? (end - 1) % over_.cols + 1 : over_.cols;
        std::vector<float> x;
        for (std::uint64_t at = left; at < right; at += widest) {
            const std::uint64_t width = std::min(widest, right - at);
            x.resize(static_cast<std::size_t>(height * width));
            for (std::uint64_t r = 0; r < height; ++r) {
                rotated_->read(((top + r) * over_.cols + at) * sizeof(float),
                               std::as_writable_bytes(std::span(x).subspan(r * width, width)));
            }
            transform::rotate_back(how_, {x.data(), height, width, width}, transform::run::column);
            for (std::uint64_t r = row - top; r < height; ++r) {
                const std::uint64_t begin = (top + r) * over_.cols + at;
                const std::uint64_t from = std::max(begin, first);
                const std::uint64_t to = std::min(begin + width, end);
                if (from >= to) continue;
                std::memcpy(bytes.data() + (from - first) * sizeof(float),
                            x.data() + r * width + (from - begin), (to - from) * sizeof(float));
            }
        }
        return end - first;
    }

    io::shared_source rotated_;
    transform::rotation how_;
    block::view over_;
    bool columns_;
};

// The parameters of one tensor, whose tensor scale the file holds.
codec::block_params params_of(const io::reader& file, const packed_model& model,
                              const packed_tensor& t) {
    codec::block_params params = codec::params_of(model.recipe);
    if (!t.tensor_scale) return params;
    const float stored = io::read_run<float>(*file.open(*t.tensor_scale), 0, 1).front();
    try {
        codec::set_tensor_scale(params, stored);
    } catch (const base::error& e) {
        throw base::error(e.kind(), e.message(), {path_of(file), t.name, {}});
    }
    return params;
}

}  // namespace

std::unique_ptr<io::byte_source> open_packed(const io::reader& file, const packed_model& model,
                                             const packed_tensor& t) {
    std::string reason;
    const block::grid g = lay_out(t.shape, model.recipe, reason)->grid;
    auto values = std::make_unique<packed_source>(
        params_of(file, model, t), model.recipe.element->bits(), g, file.open(t.codes),
        file.open(t.scales), t.offsets ? file.open(*t.offsets) : nullptr);
    if (model.recipe.rotate.what == transform::kind::none) return values;
    return std::make_unique<unrotated_source>(std::move(values), model.recipe.rotate, g);
}

}  // namespace mx::engine
