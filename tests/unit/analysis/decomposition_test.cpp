// SPDX-License-Identifier: Apache-2.0
// The squared error by origin: blocks worked out by hand, and parts that add up exactly.
#include "libmx/metrics/metrics.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/metrics/row.hpp"
#include "tests/catch.hpp"

using namespace mx;

namespace {

metrics::totals totals_of(const std::vector<float>& x, std::uint64_t cols, const std::string& text,
                          int threads = 1) {
    engine::run_control control;
    control.threads = threads;
    const analysis::matrix m{tensor::dtype::f32, reinterpret_cast<const std::byte*>(x.data()),
                             x.size() / cols, cols, "w"};
    const std::vector<codec::recipe> recipes{codec::parse_recipe(text)};
    return analysis::analyze_matrix(m, recipes, false, control, true).front().totals;
}

base::exact_sum sum_of_parts(const block::exact_totals& sums) {
    base::exact_sum sum = sums.clamp;
    sum.merge(sums.underflow);
    sum.merge(sums.grid());
    return sum;
}

double member(const report::value& v, const char* name) {
    return std::get<double>(*report::find(std::get<report::record>(v), name));
}

std::vector<float> heavy_tailed(std::size_t n) {
    std::mt19937 random(7);
    std::student_t_distribution<float> t(2.0f);
    std::vector<float> x(n);
    for (float& v : x) v = t(random);
    return x;
}

}  // namespace

TEST_CASE("each part of a block worked out by hand") {
    // Under scale 1: an element that rounds beyond the largest value, one that rounds to zero, one
    // between two numbers; and the three squared errors.
    struct example {
        const char* recipe;
        float clamps, vanishes, rounds;
        double clamp, underflow, grid;
    };
    for (const example& e : {
             example{"mxfp8_e4m3", 500, 0x1p-11f, 1.03125f, 2704, 0x1p-22, 0x1p-10},  // 448, 0, 1
             {"mxfp8_e5m2", 64000, 0x1p-18f, 1.0625f, 44302336, 0x1p-36, 0x1p-8},     // 57344, 0, 1
             {"mxfp6_e2m3", 7.875f, 0.03125f, 1.03125f, 0.140625, 0x1p-10, 0x1p-10},  // 7.5, 0, 1
             {"mxfp6_e3m2", 31, 0x1p-6f, 1.0625f, 9, 0x1p-12, 0x1p-8},                // 28, 0, 1
             {"mxfp4_e2m1", 7.5f, 0.125f, 1.125f, 2.25, 0x1p-6, 0x1p-6},              // 6, 0, 1
             {"mxfp4_e3m0", 28, 0x1p-5f, 1.25f, 144, 0x1p-10, 0x1p-4},                // 16, 0, 1
             {"mxint8", 2 - 0x1p-10f, 0x1p-9f, 1 + 0x1p-8f, 225 * 0x1p-20, 0x1p-18, 0x1p-16},
             {"mxint4", 1.9375f, 0.0625f, 1.0625f, 0.03515625, 0x1p-8, 0x1p-8},  // 7/4, 0, 1
         }) {
        for (const float sign : {1.0f, -1.0f}) {
            // int8 reaches -2, so nothing clamps here.
            if (sign < 0 && std::string(e.recipe) == "mxint8") continue;
            const std::vector<float> x{sign * e.clamps, 0.0f, -e.vanishes, e.rounds, 1.0f};
            const metrics::totals t = totals_of(x, 5, e.recipe);
            const double total = e.clamp + e.underflow + e.grid;
            CAPTURE(e.recipe, sign);
            CHECK(t.count.clamp == 1);
            CHECK(t.count.underflow == 1);
            const report::value v = metrics::squared_error(t);
            CHECK(member(v, "clamp") == e.clamp);
            CHECK(member(v, "underflow") == e.underflow);
            CHECK(member(v, "grid") == e.grid);
            CHECK(member(v, "total") == total);
            CHECK(std::get<double>(metrics::clamp_error_share(t)) == e.clamp / total);
            CHECK(sum_of_parts(t.sum) == t.sum.error2());
        }
    }
}

TEST_CASE("parts are those of any number of threads, and of each element alone") {
    const std::vector<float> x = heavy_tailed(300 * 1037);
    for (const char* text :
         {"mxfp4", "mxfp8_e5m2:round=stochastic,seed=3", "mxint4:offset=fp16,block=1x16",
          "mxfp6:block=32x1,round=up", "mxint8", "mxfp4:block=7x5,scale=rceil", "fp8_1x128",
          "mxfp4:dialect=quark", "mxfp4:axis=flat,dialect=microxcaling"}) {
        CAPTURE(text);
        // In one column every block has one element.
        const std::uint64_t cols = std::string(text) == "mxint8" ? 1 : 1037;
        const metrics::totals alone = totals_of(x, cols, text, 1);
        for (const int threads : {2, 7}) {
            CHECK(totals_of(x, cols, text, threads).sum == alone.sum);
        }
        // The grid part is the remainder; the sum over elements must be the same.
        const codec::block_params p = codec::params_of(codec::parse_recipe(text));
        std::uint8_t code = 0;
        block::exact_totals sums;
        base::exact_sum grid;
        for (const float& v : std::span(x).first(5000)) {
            block::exact_totals one;
            codec::quantize_block(p, {&v, 1}, {}, {&code, 1}, {}, &one, true);
            sums.merge(one);
            if (one.clamp == base::exact_sum{} && one.underflow == base::exact_sum{}) {
                grid.merge(one.error2());
            }
        }
        CHECK(sums.grid() == grid);
    }
}

TEST_CASE("a part without elements is exactly zero, and no error has no shares") {
    // Under ceil nothing clamps; constants just below a power of two do nothing else under floor.
    const std::vector<float> x = heavy_tailed(64 * 32);
    CHECK(std::get<double>(metrics::clamp_error_share(totals_of(x, 32, "mxfp4:scale=ceil"))) == 0);
    const std::vector<float> gains(64, 0.98f);
    const metrics::totals all = totals_of(gains, 32, "mxfp4");
    CHECK(std::get<double>(metrics::clamp_error_share(all)) == 1);
    CHECK(member(metrics::squared_error(all), "grid") == 0);
    CHECK(member(metrics::squared_error(all), "underflow") == 0);
    // A part of elements without an error: -2 and 1 are numbers of the format.
    const metrics::totals kept = totals_of({-2.0f, 1.0f}, 2, "mxint8:int_min=full");
    CHECK(member(metrics::squared_error(kept), "total") == 0);
    CHECK(std::holds_alternative<std::monostate>(metrics::grid_error_share(kept)));
    // Nothing counted.
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const metrics::totals none = totals_of({nan, 1.0f}, 2, "mxfp4");
    CHECK(std::holds_alternative<std::monostate>(metrics::squared_error(none)));
    CHECK(std::holds_alternative<std::monostate>(metrics::clamp_error_share(none)));
}

TEST_CASE("the crest factor is over what is counted") {
    const auto crest = [](const std::vector<float>& x, const char* text) {
        return metrics::row_of(totals_of(x, x.size(), text)).crest_factor;
    };
    const float inf = std::numeric_limits<float>::infinity();
    CHECK(crest({1, -7, 1, 7}, "mxfp4") == Approx(7 / 5.0));
    CHECK(crest({0, 0, -3, 0}, "mxfp8:offset=fp16") == Approx(2.0));
    // The block with the infinity does not count, nor does its 9.
    CHECK(crest({9, inf, 2, 2, 2, -2}, "mxfp4:block=1x2") == Approx(1.0));
    // If a dialect keeps the block, its finite elements count.
    CHECK(crest({9, 9, 3, inf}, "nvfp4:dialect=torchao,scale=single-level") ==
          Approx(9 / std::sqrt(57.0)));
    CHECK(std::isnan(crest({0, 0}, "mxfp4")));
    CHECK(std::isnan(crest({inf, 1}, "mxfp4")));
}
