// SPDX-License-Identifier: Apache-2.0
// Files of kind `gemm`: products of a library, M x N outputs in D as float32 or bfloat16 bits. The
// operands are made from the seed. k is taken to ascend in one slice, unless the library reported a
// number of slices.
#include <fmt/format.h>

#include <bit>

#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/multiply.hpp"
#include "libmx/pipeline/vectors/mma_model.hpp"
#include "libmx/pipeline/verify/captured.hpp"
#include "libmx/pipeline/verify/kinds.hpp"
#include "libmx/pipeline/verify/mma_file.hpp"

namespace mx::pipeline {
namespace {

// To nearest even; NaN stays one.
std::uint32_t rounded_to_bf16(std::uint32_t bits) {
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
    return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

}  // namespace

std::string verify_gemm(const vector_file& file, const verify_options& options, comparison& found) {
    mma_facts facts;
    facts.operands = mma_operands_of(file);
    facts.instruction_k = integer_of(file, "instruction_k", 1, 256);
    const auto rows = static_cast<std::size_t>(integer_of(file, "m", 16, 8192));
    const auto columns = static_cast<std::size_t>(integer_of(file, "n", 8, 8192));
    const auto depth = static_cast<std::size_t>(integer_of(file, "k_total", 32, 1 << 16));
    const std::string& out = file.at("out_format");
    mma_case what{facts.operands.a,
                  facts.operands.b,
                  facts.operands.scale,
                  false,
                  static_cast<std::size_t>(facts.instruction_k),
                  0};
    what.steps = depth / what.instruction_k;
    if (what.depth() != depth || rows % mma_tile_rows != 0 || columns % mma_tile_cols != 0 ||
        (what.scale != nullptr && what.instruction_k % what.scale->block != 0)) {
        file.fail(
            fmt::format("its metadata describes a product of {} x {} x {}", rows, columns, depth));
    }
    if (out != "f32" && out != "bf16")
        file.fail(fmt::format("its metadata says out_format={}", out));
    // The operands are large: the outputs must be there before they are made.
    const bool bf16 = out == "bf16";
    std::vector<std::uint32_t> recorded;
    if (bf16) {
        const auto words = file.u16("D", rows * columns);
        recorded.assign(words.begin(), words.end());
    } else {
        recorded = file.u32("D", rows * columns);
    }
    const auto model = options.accumulator ? options.accumulator : captured_model_of(file, facts);
    if (!model) {
        found.skip(no_model, 1, recorded.size());
        return "no model";
    }
    const std::uint64_t seed = generator_seed(file, mma_inputs_version);
    gemm::arrangement how;
    how.slices = static_cast<std::size_t>(
        file.find("split_k") == nullptr ? 1 : integer_of(file, "split_k", 1, 1024));
    const auto got = gemm::multiply(generated_a(what, seed, rows), generated_b(what, seed, columns),
                                    {}, *model, how, {});
    found.about("D", to_string(*model));
    for (std::size_t i = 0; i < recorded.size(); ++i) {
        if (bf16) {
            found.check_integer({i, {}, {}, {}}, recorded[i], rounded_to_bf16(got[i]));
        } else {
            found.check_bits({i, {}, {}, {}}, 32, recorded[i], got[i]);
        }
    }
    return fmt::format("{}: {} x {}", to_string(*model), what.a->name, what.b->name);
}

}  // namespace mx::pipeline
