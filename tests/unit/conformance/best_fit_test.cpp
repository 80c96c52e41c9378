// SPDX-License-Identifier: Apache-2.0
// Finds the model of recorded outputs: by its row, or by one or two fields that differ from it.
#include "libmx/conformance/verify/best_fit.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "libmx/conformance/vectors/mma_model.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "tests/catch.hpp"

namespace {

using namespace mx::conformance::vectors;
using namespace mx::conformance::verify;
namespace gemm = mx::gemm;

mma_case case_of(const char* format, bool f16, std::size_t k) {
    return {
        gemm::find_operand_format(format), gemm::find_operand_format(format), nullptr, f16, k, 1};
}

model_fit fit_of_outputs(const mma_case& what, const std::string& maker,
                         const std::optional<gemm::accumulator>& model) {
    const gemm::accumulator m = gemm::parse_accumulator(maker);
    std::vector<std::vector<std::uint32_t>> outputs;
    std::vector<recorded_tile> tiles;
    for (const mma_distribution& d : mma_distributions()) {
        const std::size_t count =
            d.probes == nullptr ? 3 : std::min<std::size_t>(4, d.probes(what));
        for (std::size_t t = 0; t < count; ++t) {
            mma_tile inputs = generate_mma_tile(what, d, 7, t);
            outputs.push_back(multiply_tile(what, inputs, d.accumulate, m));
            tiles.push_back({std::move(inputs), d.accumulate, {}});
        }
    }
    for (std::size_t i = 0; i < tiles.size(); ++i) tiles[i].outputs = outputs[i];
    const auto fit = best_fit(what, tiles, model);
    REQUIRE(fit);
    CHECK(fit->compared == tiles.size() * mma_tile_outputs);
    return *fit;
}

}  // namespace

TEST_CASE("outputs of a row lead to that row, whatever was expected") {
    const auto fit = fit_of_outputs(case_of("e4m3", false, 32), "sm90.wgmma.fp8",
                                    gemm::parse_accumulator("sm100.f8f6f4"));
    CHECK(fit.model == "sm90.wgmma.fp8");
    CHECK(fit.differences == 0);
    // fp8 never gets down to the floor.
    CHECK(std::find(fit.equally.begin(), fit.equally.end(), "sm90.wgmma.fp8:exponent_floor=-134") !=
          fit.equally.end());
    CHECK(fit_of_outputs(case_of("e5m2", true, 32), "sm100.mma.fp8.f16acc", {}).differences == 0);
}

TEST_CASE("fields that differ from every row are found one after the other") {
    for (const char* maker : {"sm90.mma.f16:fraction_bits=24,zero=kept",
                              "sm90.wgmma.f16:exponent_floor=-131,underflow=plus"}) {
        const auto fit = fit_of_outputs(case_of("bf16", false, 16), maker,
                                        gemm::parse_accumulator("sm90.wgmma.f16"));
        CAPTURE(maker, fit.model);
        CHECK(fit.differences == 0);
    }
}

TEST_CASE("what no model explains is counted") {
    const mma_case what = case_of("f16", false, 16);
    mma_tile inputs = generate_mma_tile(what, *find_mma_distribution("gauss"), 1, 0);
    auto outputs = multiply_tile(what, inputs, true, gemm::parse_accumulator("sm90.wgmma.f16"));
    outputs[5] ^= 0x00400000u;
    const std::vector<recorded_tile> tiles{{std::move(inputs), true, outputs}};
    const auto fit = best_fit(what, tiles, gemm::parse_accumulator("sm90.wgmma.f16"));
    REQUIRE(fit);
    CHECK(fit->differences == 1);
    CHECK(fit->model == "sm90.wgmma.f16");
}
