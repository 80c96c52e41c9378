// SPDX-License-Identifier: Apache-2.0
#include "libmx/pipeline/packed_source.hpp"

#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/io/quantized/coded_blocks.hpp"
#include "libmx/pipeline/geometry.hpp"
#include "libmx/quantize/block_kernel.hpp"

namespace mx::pipeline {
namespace {

class packed_source final : public io::coded_blocks<float> {
  public:
    packed_source(const quantize::block_params& params, int bits, const block::grid& g,
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
                quantize::dequantize_block(params_, scales[block], offsets[block], codes, values);
            });
    }

    // Scales as numbers, whatever holds them.
    std::vector<float> read_scales(std::uint64_t first, std::uint64_t count) const {
        const bool has_codes = params_.scale_format->has_codes() &&
                               params_.by->storage.value == quantize::scale_storage::code;
        if (!has_codes) return io::read_run<float>(*scales_, first, count);
        std::vector<float> scales;
        for (const std::uint8_t code : io::read_run<std::uint8_t>(*scales_, first, count)) {
            scales.push_back(format::decode_scale(*params_.scale_format, code));
        }
        return scales;
    }

    quantize::block_params params_;
    io::shared_source scales_, offsets_;
};

// The parameters of one tensor, whose tensor scale the file holds.
quantize::block_params params_of(const io::reader& file, const packed_model& model,
                                 const packed_tensor& t) {
    quantize::block_params params = quantize::params_of(model.recipe);
    if (!t.tensor_scale) return params;
    const float stored = io::read_run<float>(*file.open(*t.tensor_scale), 0, 1).front();
    try {
        quantize::set_tensor_scale(params, stored);
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
    return std::make_unique<packed_source>(params_of(file, model, t), model.recipe.element->bits(),
                                           g, file.open(t.codes), file.open(t.scales),
                                           t.offsets ? file.open(*t.offsets) : nullptr);
}

}  // namespace mx::pipeline
