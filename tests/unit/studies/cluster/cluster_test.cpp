// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "libmx/codec/block_kernel.hpp"
#include "libmx/engine/saturation_zone.hpp"
#include "libmx/studies/cluster/diagnose.hpp"
#include "tests/catch.hpp"
#include "tests/memory_model.hpp"

using namespace mx;
using report::find;

namespace {

void add(tests::memory_model& model, const char* name, const tensor::shape& shape,
         const std::vector<float>& values) {
    model.add(name, tensor::dtype::f32, shape, values);
}

// Around `centre`, like the gains of a norm.
std::vector<float> around(float centre, float deviation, std::size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(centre, deviation);
    std::vector<float> x(n);
    for (float& v : x) v = normal(random);
    return x;
}

cluster::cluster_report examine(const tests::memory_model& model,
                                const std::vector<std::string>& recipes, int threads = 1,
                                float norm_bias = 0) {
    analysis::analysis_request request;
    for (const std::string& r : recipes) request.recipes.push_back(codec::parse_recipe(r));
    request.norm_bias = norm_bias;
    engine::run_control control;
    control.threads = threads;
    return cluster::diagnose(model.all(), request, control);
}

double number(const report::record& r, const char* name) {
    const report::value& v = *find(r, name);
    if (const auto* n = std::get_if<std::int64_t>(&v)) return static_cast<double>(*n);
    return std::get<double>(v);
}

double number(const report::value& v) { return std::get<double>(v); }

const cluster::measured_remedy& chosen(const cluster::finding& f) { return f.remedies[f.chosen]; }

}  // namespace

TEST_CASE("0.99 everywhere saturates under floor, and rceil is named as the remedy") {
    tests::memory_model model;
    add(model, "gamma", {32}, std::vector<float>(32, 0.99f));
    const auto report = examine(model, {"mxfp8:scale=floor", "mxfp4:scale=floor"});
    REQUIRE(report.findings.size() == 2);
    for (const cluster::finding& f : report.findings) {
        const bool fp4 = f.recipe.element->name == "e2m1";
        CHECK(f.what == cluster::defect::saturation);
        REQUIRE(f.survey.worst.size() == 1);
        CHECK(*f.survey.worst[0].becomes == (fp4 ? 0.75 : 0.875));
        CHECK(f.survey.worst[0].gain == Approx((fp4 ? 0.75 : 0.875) / 0.99));
        CHECK(number(f.survey.saturated_block_gain) == Approx((fp4 ? 0.75 : 0.875) / 0.99));
        CHECK(number(f.survey.certain_overflow_block_rate) == 1);
        CHECK(chosen(f).change == "scale=rceil");
        CHECK(codec::parse_recipe(chosen(f).recipe).rule->name == "rceil");
        CHECK(number(chosen(f).rmse) == Approx(0.01).epsilon(1e-5));
        CHECK(number(chosen(f).saturated_block_rate) == 0);
        CHECK(f.remedies.size() == 5);
        CHECK(f.remedies.back().recipe == "bf16");
        CHECK(number(f.remedies.back().rmse) == Approx(0.99 - 0.98828125).epsilon(1e-4));
    }
}

TEST_CASE("a survey counts what the kernel says block by block") {
    // Tight blocks in several binades, with zeros, lonely elements, equal ones and a NaN.
    std::vector<float> x = around(0.93f, 0.06f, 4000, 1);
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = std::ldexp(x[i], static_cast<int>(i / 100 % 5));
        if (i % 7 == 0) x[i] = -x[i];
        if (i % 11 == 0) x[i] = 0;
        if (i / 32 % 9 == 0 && i % 32 != 5) x[i] = 0;
        if (i / 100 == 7) x[i] = 1.9f;
        if (i / 100 == 8) x[i] = 1.0f + 0.001f * static_cast<float>(i % 3);
    }
    x[1234] = NAN;
    tests::memory_model model;
    add(model, "w", {40, 100}, x);
    analysis::analysis_request request;
    for (const char* text :
         {"mxfp8", "mxfp4:scale=even", "mxfp4_e3m0", "mxint4", "mxint8:int_min=full",
          "mxfp6:round=up", "mxfp4:round=stochastic,seed=1", "mxfp8:offset=fp16",
          "mxfp8:dialect=microxcaling"}) {
        request.recipes.push_back(codec::parse_recipe(text));
    }
    const auto surveys = cluster::survey_blocks(model.all(), request, {});
    REQUIRE(surveys.size() == request.recipes.size());
    for (std::size_t r = 0; r < surveys.size(); ++r) {
        const cluster::block_survey& s = surveys[r];
        CAPTURE(codec::to_string(request.recipes[r]));
        const auto p = codec::params_of(request.recipes[r]);
        std::uint64_t blocks = 0, eligible = 0, saturated = 0, clamped = 0, collapsed = 0;
        double gains = 0, largest_loss = 0;
        for (std::size_t row = 0; row < 40; ++row) {
            for (std::size_t col = 0; col < 100; col += 32) {
                const std::size_t n = std::min<std::size_t>(32, 100 - col);
                const auto block = std::span(x).subspan(row * 100 + col, n);
                std::vector<std::uint8_t> codes(n);
                codec::block_place place{base::tensor_id("w"), row * 100 + col, 100,
                                         static_cast<int>(n)};
                const auto b = codec::measure_block(p, block, place, codes);
                ++blocks;
                eligible += b.is.eligible;
                saturated += b.is.saturated;
                const bool clamps = b.is.saturated && b.count.overflow > 0;
                const bool merges = b.is.collapsed && !clamps && b.x_min != b.x_max;
                clamped += clamps;
                collapsed += merges && b.sum.error2 > 0;
                if (b.is.saturated) gains += b.sum.xd / b.sum.x2;
                if (clamps || (merges && b.sum.error2 > 0)) {
                    largest_loss = std::max(largest_loss, b.sum.error2 / b.sum.x2);
                }
            }
        }
        CHECK(s.blocks == blocks);
        CHECK(s.eligible == eligible);
        CHECK(s.saturated == saturated);
        CHECK(s.defective[0] == clamped);
        CHECK(s.defective[1] == 0);
        CHECK(s.defective[2] == collapsed);
        CHECK((s.worst.empty() ? 0 : s.worst[0].loss) == largest_loss);
        if (saturated > 0) {
            CHECK(number(s.saturated_block_gain) ==
                  Approx(gains / static_cast<double>(saturated)).epsilon(1e-12));
        }
        const bool random = request.recipes[r].round == format::rounding::stochastic;
        const bool closed = engine::block_judge::of(request.recipes[r]).has_value();
        if (closed && !random) {
            CHECK(number(s.certain_saturation_block_rate) == number(s.saturated_block_rate));
        }
        CHECK(closed != std::holds_alternative<std::monostate>(s.certain_saturation_block_rate));
    }
    CHECK(surveys[0].defective[0] > 3);
    CHECK(surveys[1].defective[2] > 3);
}

TEST_CASE("facts of blocks stand behind the analysis of a tensor") {
    const std::vector<float> x = around(0.93f, 0.03f, 5120, 1);
    tests::memory_model model;
    add(model, "w.norm", {40, 128}, x);
    const auto report = examine(model, {"mxfp8"});
    REQUIRE(report.findings.size() == 1);
    const cluster::block_survey& s = report.findings[0].survey;
    std::uint64_t in_zone = 0, overflowing = 0;
    for (std::size_t i = 0; i < x.size(); i += 32) {
        const auto [least, top] =
            std::minmax_element(x.begin() + static_cast<std::ptrdiff_t>(i),
                                x.begin() + static_cast<std::ptrdiff_t>(i + 32));
        const float binade = std::ldexp(1.0f, std::ilogb(*top));
        in_zone += *top > 1.75f * binade;
        overflowing += *least > 1.75f * binade;
    }
    REQUIRE(overflowing > 0);
    CHECK(number(s.clamp_zone_block_rate) == static_cast<double>(in_zone) / 160);
    CHECK(number(s.certain_overflow_block_rate) == static_cast<double>(overflowing) / 160);
    CHECK(s.worst.size() == cluster::worst_blocks);
    REQUIRE(s.nearest);
    CHECK(s.nearest->nearness < 1);
    CHECK(s.nearest->nearness > 0.9);

    const report::record result = report.results.front();
    CHECK(number(result, "certain_saturation_block_rate") ==
          number(result, "saturated_block_rate"));
    CHECK(number(result, "clamp_zone_block_rate") == number(s.clamp_zone_block_rate));
    CHECK(number(result, "rmse") == number(s.rmse));
    CHECK(number(result, "spread_p50") == number(*find(s.spread, "p50")));
}

TEST_CASE("the report does not depend on threads", "[slow]") {
    tests::memory_model model;
    add(model, "a.norm", {300, 1000}, around(0.92f, 0.05f, 300000, 2));
    add(model, "b.norm", {70000, 5}, around(0.95f, 0.03f, 350000, 3));
    add(model, "w", {3, 130, 257}, around(0, 1, std::size_t{3} * 130 * 257, 4));
    const std::vector<std::string> recipes{"mxfp8",
                                           "mxfp4:block=32x1",
                                           "nvfp4",
                                           "mxint8:int_min=full",
                                           "mxfp4:round=stochastic,seed=5",
                                           "mxfp8:dialect=systems-scaling"};
    const auto one = examine(model, recipes, 1, 0.5f);
    REQUIRE(one.findings.size() > 1);
    for (const int threads : {2, 7}) {
        const auto many = examine(model, recipes, threads, 0.5f);
        REQUIRE(many.results.size() == one.results.size());
        for (std::size_t i = 0; i < one.results.size(); ++i) {
            CHECK(many.results[i] == one.results[i]);
        }
        REQUIRE(many.findings.size() == one.findings.size());
        for (std::size_t i = 0; i < one.findings.size(); ++i) {
            CHECK(cluster::finding_record(many.findings[i], engine::role_finder()) ==
                  cluster::finding_record(one.findings[i], engine::role_finder()));
        }
        for (std::size_t r = 0; r < recipes.size(); ++r) {
            CHECK(many.summaries[r].nearest_tensor == one.summaries[r].nearest_tensor);
        }
    }
}

TEST_CASE("what loses nothing is not in danger") {
    tests::memory_model model;
    add(model, "ones", {64}, std::vector<float>(64, 1.0f));
    add(model, "top", {64}, std::vector<float>(64, 1.75f));  // exactly the largest code
    add(model, "odd", {64}, std::vector<float>(64, 1.01f));  // equal values stay equal
    add(model, "weight", {4, 64}, around(0, 1, 256, 1));
    const auto report = examine(model, {"mxfp8"});
    CHECK(report.findings.empty());
    REQUIRE(report.summaries[0].nearest);
    CHECK(report.summaries[0].nearest_tensor == "odd");
    CHECK(report.summaries[0].nearest->nearness == Approx(1.01 * 256 / 432));
    CHECK(report.summaries[0].saturating_tensors == 1);
    CHECK(report.summaries[0].in_danger == 0);
}

TEST_CASE("collapse is mended by an offset, and the worse ailment comes first") {
    tests::memory_model model;
    add(model, "flat", {256}, around(1.1f, 0.02f, 256, 1));
    add(model, "clamped", {256}, around(0.92f, 0.02f, 256, 2));
    const auto report = examine(model, {"mxfp4"});
    REQUIRE(report.findings.size() == 2);
    CHECK(report.findings[0].tensor.info().name == "clamped");
    CHECK(report.findings[0].what == cluster::defect::saturation);
    CHECK(chosen(report.findings[0]).change == "scale=rceil");
    CHECK(report.findings[1].what == cluster::defect::collapse);
    CHECK(chosen(report.findings[1]).change == "offset=fp16");
    CHECK(report.summaries[0].in_danger == 2);
}

TEST_CASE("the remedy is the cheapest recipe that removes the danger, then the best") {
    using cluster::measured_remedy;
    const auto m = [](double bits, double rmse, double saturating) {
        return measured_remedy{"", "", rmse, 0.0, bits, {saturating, 0, 0}};
    };
    const auto choose = [](const std::vector<measured_remedy>& list) {
        return cluster::choose_remedy(list, cluster::defect::saturation, 0.1);
    };
    CHECK(choose({m(8, 0.05, 0), m(8, 0.04, 0), m(9, 0.01, 0), m(16, 0, 0)}) == 1);
    CHECK(choose({m(8, 0.05, 0), m(8, 0.05, 0), m(16, 0, 0)}) == 0);  // the first of equals
    CHECK(choose({m(8, 0.01, 0.01), m(9, 0.05, 0.009), m(16, 0, 0)}) == 1);
    CHECK(choose({m(8, 0.1, 0), m(9, 0.2, 0), m(16, 0, 0)}) == 2);  // no less error: bf16
    CHECK(choose({m(8, 0.01, 0.5), m(16, 0, 0)}) == 1);
    CHECK(choose({m(16, 0, 0)}) == 0);
}

TEST_CASE("remedies keep the recipe but for their change") {
    const auto changes = [](const char* text) {
        std::string all;
        for (const cluster::remedy& m : cluster::remedies_of(codec::parse_recipe(text))) {
            all += codec::to_string(m.recipe) + " ";
        }
        return all;
    };
    CHECK(changes("mxfp8") ==
          "mxfp8:scale=rceil mxfp8:scale=floor-bump mxfp8:offset=fp16 mxfp8:block=1x16 ");
    CHECK(changes("mxfp4:scale=rceil,block=16x2") ==
          "mxfp4:scale=floor-bump,block=16x2 mxfp4:scale=rceil,block=16x2,offset=fp16 "
          "mxfp4:scale=rceil,block=8x2 ");
    // Settings that a dialect lacks are tried without it; settings without a meaning are not tried.
    CHECK(changes("mxfp8:dialect=microxcaling").find("mxfp8:scale=rceil,round=away ") == 0);
    CHECK(changes("nvfp4") == "nvfp4:block=1x8 ");
}

TEST_CASE("rounding to bfloat16 is measured") {
    tests::memory_model model;
    std::vector<float> x = around(1, 0.1f, 1000, 1);
    add(model, "f32", {1000}, x);
    x.push_back(3.4e38f);  // rounds to Inf
    add(model, "beyond", {1001}, x);
    model.add("bf16", tensor::dtype::bf16, {3}, std::vector<std::uint16_t>{0x3f80, 0x4000, 0x3f81});
    add(model, "empty", {0}, {});
    double sum = 0;
    for (std::size_t i = 0; i < 1000; ++i) {
        // Eight significant bits.
        const float ulp = std::ldexp(1.0f, std::ilogb(x[i]) - 7);
        sum += std::pow(double{std::nearbyint(x[i] / ulp) * ulp} - double{x[i]}, 2);
    }
    const auto rmse = cluster::bf16_cast_rmse(model.all(), analysis::analysis_request(), {});
    CHECK(number(rmse[0]) == Approx(std::sqrt(sum / 1000)).epsilon(1e-12));
    CHECK(std::holds_alternative<std::monostate>(rmse[1]));
    CHECK(number(rmse[2]) == 0);
    CHECK(std::holds_alternative<std::monostate>(rmse[3]));
}

TEST_CASE("norms around zero look like gamma - 1") {
    tests::memory_model model;
    add(model, "layers.0.norm.weight", {256}, around(0, 0.1f, 256, 1));
    add(model, "layers.1.norm.weight", {256}, std::vector<float>(256, 0.0f));
    add(model, "layers.2.norm.weight", {256},
        around(0.2f, 0.05f, 256, 2));  // small, never negative
    add(model, "layers.0.mlp.weight", {16, 16}, around(0, 0.1f, 256, 3));
    const auto found = examine(model, {"mxfp8"});
    CHECK(found.norms.norms == 3);
    REQUIRE(found.norms.around_zero.size() == 2);
    CHECK(found.norms.around_zero[1] == "layers.1.norm.weight");
    CHECK(found.norms.look_like_gamma_minus_one());
    add(model, "layers.3.norm.weight", {256}, around(1, 0.1f, 256, 4));
    CHECK_FALSE(examine(model, {"mxfp8"}).norms.look_like_gamma_minus_one());
}

TEST_CASE("the bias of norms decides their verdict") {
    tests::memory_model model;
    add(model, "layers.0.norm.weight", {256}, around(-0.08f, 0.02f, 256, 1));
    add(model, "layers.0.proj", {16, 16}, around(-0.08f, 0.02f, 256, 1));
    CHECK(examine(model, {"mxfp8"}).findings.empty());
    const auto biased = examine(model, {"mxfp8"}, 1, 1.0f);
    REQUIRE(biased.findings.size() == 1);
    CHECK(biased.findings[0].tensor.info().name == "layers.0.norm.weight");
    CHECK(chosen(biased.findings[0]).change == "scale=rceil");
    // The analysis saw the same values.
    CHECK(number(biased.results.front(), "rmse") == number(biased.findings[0].survey.rmse));
    CHECK(number(biased.findings[0].remedies.back().rmse) > 0);
}

TEST_CASE("tensors without blocks to judge are named") {
    tests::memory_model model;
    add(model, "column", {64, 1}, around(0.95f, 0.02f, 64, 1));
    add(model, "scalar", {}, {1.0f});
    add(model, "zeros", {2, 64}, std::vector<float>(128, 0.0f));
    model.add("mask", tensor::dtype::boolean, {4}, std::vector<std::uint8_t>(4));
    const auto report = examine(model, {"mxfp8"});
    CHECK(report.findings.empty());
    REQUIRE(report.unjudged.size() == 1);
    CHECK(report.unjudged[0].tensor == "column");
    REQUIRE(report.skipped.size() == 1);
    CHECK(report.skipped[0].tensor == "mask");
    CHECK(examine(model, {"mxfp8:axis=flat"}).findings.size() == 1);
}
