// SPDX-License-Identifier: Apache-2.0
// Files of kind `gemm`: products of a library, M x N outputs in D as float32 or bfloat16 bits. The
// operands are generated from the seed. Assumes ascending k in one slice unless the library
// reported a number of slices; for Hopper's fp8 without fast accumulation, tries parts of several
// sizes and takes the one that fits best.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "libmx/conformance/vectors/mma_model.hpp"
#include "libmx/conformance/verify/mma_file.hpp"
#include "libmx/conformance/verify/verify.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/multiply.hpp"

namespace mx::conformance::verify {
std::string verify_gemm(const vector_file& file, const verify_options& options, comparison& found) {
    vectors::mma_case what = mma_case_of(file);
    what.instruction_k = size_of(file, "instruction_k", 1, 256);
    const std::size_t rows = size_of(file, "m", 16, 8192);
    const std::size_t columns = size_of(file, "n", 8, 8192);
    const std::size_t depth = size_of(file, "k_total", 32, 1 << 16);
    const std::string& out = file.at("out_format");
    what.steps = depth / what.instruction_k;
    if (what.depth() != depth || rows % vectors::mma_tile_rows != 0 ||
        columns % vectors::mma_tile_cols != 0 ||
        (what.scale != nullptr && what.instruction_k % what.scale->block != 0)) {
        file.fail("its metadata describes a product of {} x {} x {}", rows, columns, depth);
    }
    if (out != "f32" && out != "bf16") file.fail("its metadata says out_format={}", out);
    // The operands are large: check that the outputs exist before generating them.
    const bool bf16 = out == "bf16";
    const auto recorded = file.words("D", bf16 ? 16 : 32, rows * columns);
    auto model = options.accumulator ? options.accumulator : captured_model_of(file, what);
    if (!model) {
        found.skip(no_model, 1, recorded.size());
        return "no model";
    }
    const std::uint64_t seed = generator_seed(file, vectors::mma_inputs_version);
    gemm::arrangement how;
    how.slices = file.find("split_k") == nullptr ? 1 : size_of(file, "split_k", 1, 1024);
    const gemm::operand a = vectors::generated_a(what, seed, rows);
    const gemm::operand b = vectors::generated_b(what, seed, columns);
    const auto outputs_of = [&](const gemm::accumulator& m) {
        auto outputs = gemm::multiply(a, b, {}, m, how, {});
        if (bf16) {
            for (std::uint32_t& bits : outputs) bits = vectors::rounded_to_bf16(bits);
        }
        return outputs;
    };
    auto got = outputs_of(*model);
    const std::string* fast = file.find("fast_accumulation");
    if (fast != nullptr && *fast == "false" && !options.accumulator) {
        // The library chooses after how many k it promotes partial sums: take what fits best.
        std::optional<gemm::accumulator> best;
        std::size_t fewest = differences_in(recorded, got);
        for (std::size_t every = what.instruction_k; every < depth; every *= 2) {
            gemm::accumulator m = *model;
            m.promote_every = static_cast<int>(every);
            auto outputs = outputs_of(m);
            const std::size_t count = differences_in(recorded, outputs);
            if (count >= fewest) continue;
            fewest = count;
            got = std::move(outputs);
            best = m;
        }
        if (best) model = best;
    }
    found.about("D", to_string(*model));
    for (std::size_t i = 0; i < recorded.size(); ++i) {
        if (bf16) {
            found.check_integer({i, {}, {}, {}}, recorded[i], got[i]);
        } else {
            found.check_bits({i, {}, {}, {}}, 32, recorded[i], got[i]);
        }
    }
    return fmt::format("{}: {} x {}", to_string(*model), what.a->name, what.b->name);
}

}  // namespace mx::conformance::verify
