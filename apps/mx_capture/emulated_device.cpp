// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "apps/mx_capture/device.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/conformance/vectors/mma_model.hpp"
#include "libmx/conformance/verify/mma_file.hpp"
#include "libmx/gemm/multiply.hpp"

namespace mx::capture {
namespace {

using namespace conformance::vectors;
using namespace conformance::verify;

class emulated_device final : public device {
  public:
    explicit emulated_device(const chip& c) : chip_(&c) {}

    std::vector<std::uint32_t> multiply(const instruction& i, std::size_t steps, bool accumulate,
                                        std::span<const mma_tile> tiles) override {
        mma_case what = i.what;
        what.steps = steps;
        const gemm::accumulator model = model_of(what, i.ptx);
        std::vector<std::uint32_t> outputs(tiles.size() * mma_tile_outputs);
        base::parallel_for(tiles.size(), 0, nullptr, [&](std::uint64_t t, int) {
            const auto d = multiply_tile(what, tiles[t], accumulate, model);
            std::ranges::copy(d,
                              outputs.begin() + static_cast<std::ptrdiff_t>(t * mma_tile_outputs));
        });
        return outputs;
    }

    std::vector<std::uint8_t> narrow(const narrowing& row,
                                     std::span<const std::uint32_t> words) override {
        const narrower convert(row);
        const auto halves =
            row.from == conversion_input::f32 ? std::vector<std::uint32_t>{} : all_halves(row.from);
        std::vector<std::uint8_t> codes;
        for (const std::uint32_t word : words) {
            const std::uint32_t x = halves.empty() ? word : halves[word];
            codes.push_back(static_cast<std::uint8_t>(convert(x)));
        }
        return codes;
    }

    std::vector<std::uint64_t> hash_cells(const narrowing& row, std::uint32_t stride) override {
        return cell_hashes(narrower(row), stride);
    }

    std::vector<std::uint16_t> widen(const widening& row, std::size_t count) override {
        std::vector<std::uint16_t> values;
        for (std::uint32_t code = 0; code < count; ++code) {
            values.push_back(static_cast<std::uint16_t>(widened(row, code)));
        }
        return values;
    }

    std::vector<std::uint32_t> narrow_stochastically(
        const stochastic_narrowing& row, std::span<const stochastic_input> inputs) override {
        std::vector<std::uint32_t> results;
        for (const stochastic_input& in : inputs) {
            results.push_back(
                stochastic_result(row, random_byte_orders[0], in.x.data(), in.random));
        }
        return results;
    }

    library_product multiply_by_library(const library_problem& p) override {
        const std::string name =
            p.what.scale == nullptr
                ? "wgmma"
                : fmt::format("{}::{}", chip_->tcgen05 ? "tcgen05 kind" : "mma.sync kind",
                              p.what.instruction_k == 64 ? "mxf4nvf4" : "mxf8f6f4");
        gemm::accumulator model = model_of(p.what, name);
        if (p.what.scale == nullptr && !p.fast_accumulation) model.promote_every = 64;
        const auto d = gemm::multiply(generated_a(p.what, p.seed, p.rows),
                                      generated_b(p.what, p.seed, p.columns), {}, model, {}, {});
        library_product product{d, {{"library", "emulator"}}};
        if (!p.bf16) return product;
        for (std::uint32_t& bits : product.outputs) bits = rounded_to_bf16(bits);
        return product;
    }

  private:
    gemm::accumulator model_of(const mma_case& what, const std::string& ptx) const {
        const auto model = captured_model_of(std::string(chip_->architecture), ptx, what);
        if (model) return *model;
        throw base::error(base::error_kind::unavailable,
                          fmt::format("nothing models {} on {}", ptx, chip_->name));
    }

    const chip* chip_;
};

}  // namespace

std::unique_ptr<device> make_emulated_device(const chip& c) {
    return std::make_unique<emulated_device>(c);
}

}  // namespace mx::capture
