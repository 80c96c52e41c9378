// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/pages/views/rosetta_view.hpp"
#include "libmx/studies/rosetta/rosetta.hpp"
#include "libmx/studies/rosetta/scale_origin.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/model_files.hpp"
#include "tests/memory_model.hpp"

using namespace mx;
using report::find;

namespace {

std::vector<float> gaussian(std::size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> x(n);
    for (float& v : x) v = normal(random);
    return x;
}

double number(const report::record& r, const char* name) {
    const report::value& v = *find(r, name);
    if (const auto* n = std::get_if<std::int64_t>(&v)) return static_cast<double>(*n);
    return std::get<double>(v);
}

std::vector<codec::recipe> recipes_of(const std::vector<std::string>& texts) {
    std::vector<codec::recipe> recipes;
    for (const std::string& t : texts) recipes.push_back(codec::parse_recipe(t));
    return recipes;
}

rosetta::rosetta_result compare(const tests::memory_model& model,
                                const std::vector<std::string>& recipes, int threads = 1) {
    engine::run_control control;
    control.threads = threads;
    return rosetta::compare_bytes(model.all(), recipes_of(recipes), control);
}

}  // namespace

TEST_CASE("a pair of recipes is counted as block by block") {
    const std::vector<float> x = gaussian(40 * 100, 3);
    tests::memory_model model;
    model.add("w", tensor::dtype::f32, {40, 100}, x);
    const auto result = compare(model, {"mxfp4", "mxfp4:scale=rceil"});
    REQUIRE(result.results.size() == 1);
    const report::record r = result.results.front();

    // The same by hand: rows of 100 are blocks of 32, 32, 32 and 4.
    const auto a = codec::params_of(codec::parse_recipe("mxfp4"));
    const auto b = codec::params_of(codec::parse_recipe("mxfp4:scale=rceil"));
    double blocks = 0, scales = 0, codes = 0, own = 0, crossed = 0;
    for (std::size_t row = 0; row < 40; ++row) {
        for (std::size_t col = 0; col < 100; col += 32) {
            const std::size_t n = std::min<std::size_t>(32, 100 - col);
            const std::span<const float> block = std::span(x).subspan(row * 100 + col, n);
            std::vector<std::uint8_t> ca(n), cb(n);
            const float sa = codec::quantize_block(a, block, {}, ca).scale;
            const float sb = codec::quantize_block(b, block, {}, cb).scale;
            ++blocks;
            scales += sa != sb;
            for (std::size_t i = 0; i < n; ++i) {
                codes += ca[i] != cb[i];
                own += std::pow(double{sa} * double{a.value[ca[i]]} - double{block[i]}, 2);
                crossed += std::pow(double{sb} * double{a.value[ca[i]]} - double{block[i]}, 2);
            }
        }
    }
    CHECK(number(r, "blocks") == blocks);
    CHECK(number(r, "scales_differ") == scales);
    CHECK(scales > 0);
    CHECK(number(r, "codes_differ") == codes);
    CHECK(number(r, "rmse_a") == Approx(std::sqrt(own / 4000)).epsilon(1e-12));
    CHECK(number(r, "rmse_a_read_by_b") == Approx(std::sqrt(crossed / 4000)).epsilon(1e-12));
    CHECK(number(r, "cost_a_read_by_b") == Approx(std::sqrt(crossed / own)).epsilon(1e-12));
    CHECK(number(r, "cost_a_read_by_b") > 1);
}

TEST_CASE("codes of -0 and 0 differ, their values do not") {
    const std::vector<float> x = gaussian(40 * 100, 3);
    tests::memory_model model;
    model.add("w", tensor::dtype::f32, {40, 100}, x);
    // quark gives every zero one sign; ocp keeps that of the number.
    const auto r =
        compare(model, {"mxfp4", "mxfp4:scale=floor,dialect=quark", "mxfp4:scale=rceil"});
    const auto pair = [&](std::size_t i) { return r.total.pairs[i]; };
    CHECK(pair(0).scales_differ == 0);
    CHECK(pair(0).codes_differ > 0);
    CHECK(pair(0).values_differ == 0);
    CHECK(pair(1).values_differ > 0);
    CHECK(pair(1).values_differ == pair(2).values_differ);
    CHECK(number(r.results[0], "value_difference_rate") == 0);
}

TEST_CASE("outer scales of rows and tiles enter the errors of a comparison") {
    std::vector<float> x = gaussian(8 * 64, 9);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= std::exp2(static_cast<float>(i / 64));
    tests::memory_model model;
    model.add("w", tensor::dtype::f32, {8, 64}, x);
    for (const std::string a : {"nvfp4:outer=row", "nvfp4:outer=4x32"}) {
        const std::string b = a + ",four_over_six=mse";
        CAPTURE(a);
        const report::record r = compare(model, {a, b}).results.front();
        // The same from values.
        const auto rmse = [&](const std::string& recipe) {
            double sum = 0;
            const std::size_t rows = a == "nvfp4:outer=row" ? 1 : 4;
            const std::size_t cols = rows == 1 ? 64 : 32;
            codec::block_params p = codec::params_of(codec::parse_recipe(recipe));
            for (std::size_t row = 0; row < 8; row += rows) {
                for (std::size_t col = 0; col < 64; col += cols) {
                    float amax = 0;
                    const auto each = [&](auto&& visit) {
                        for (std::size_t i = row; i < row + rows; ++i) {
                            for (std::size_t j = col; j < col + cols; j += 16) {
                                visit(std::span<const float>(x).subspan(i * 64 + j, 16));
                            }
                        }
                    };
                    each([&](auto block) {
                        for (const float v : block) amax = std::max(amax, std::abs(v));
                    });
                    p.tensor = codec::outer_scale(p.outer, amax);
                    each([&](auto block) {
                        std::vector<std::uint8_t> codes(16);
                        std::vector<float> values(16);
                        codec::quantize_block(p, block, {}, codes, values);
                        for (std::size_t i = 0; i < 16; ++i) {
                            sum += std::pow(double{values[i]} - double{block[i]}, 2);
                        }
                    });
                }
            }
            return std::sqrt(sum / 512);
        };
        CHECK(number(r, "rmse_a") == Approx(rmse(a)).epsilon(1e-6));
        CHECK(number(r, "rmse_b") == Approx(rmse(b)).epsilon(1e-6));
        CHECK(number(r, "scales_differ") > 0);
    }
}

TEST_CASE("comparisons do not depend on threads or on other recipes") {
    tests::memory_model model;
    model.add("wide", tensor::dtype::f32, {3, 150000}, gaussian(450000, 1));
    model.add("tall", tensor::dtype::f32, {5000, 7}, gaussian(35000, 2));
    const std::vector<std::string> two{"mxfp4:block=16x2", "mxfp4:block=16x2,scale=even"};
    std::vector<std::string> three = two;
    three.push_back("mxfp4:block=16x2,dialect=fbgemm");
    const auto one = compare(model, two, 1);
    const auto many = compare(model, two, 4);
    const auto beside = compare(model, three, 3);
    for (std::size_t t = 0; t < 2; ++t) {
        CHECK(one.results[t] == many.results[t]);
        CHECK(one.results[t] == beside.results[3 * t]);
    }
}

TEST_CASE("blocks without a scale stay out of the errors") {
    std::vector<float> x = gaussian(64, 4);
    x[3] = std::numeric_limits<float>::quiet_NaN();
    tests::memory_model model;
    model.add("w", tensor::dtype::f32, {2, 32}, x);
    // Transformer Engine skips the NaN, OCP makes the whole block NaN.
    const auto result = compare(model, {"mxfp8:scale=rceil", "mxfp8:dialect=te"});
    const report::record r = result.results.front();
    CHECK(number(r, "scales_differ") == 1);
    CHECK(number(r, "compared") == 32);
}

TEST_CASE("recipes that cannot be set against each other are refused") {
    tests::memory_model model;
    model.add("w", tensor::dtype::f32, {32}, gaussian(32, 5));
    const std::vector<std::vector<std::string>> refused{
        {"mxfp4"},
        {"mxfp4", "mxfp8"},
        {"mxfp4", "mxfp4:block=1x16"},
        {"mxfp4", "mxfp4:offset=fp16"},
        {"mxfp8", "mxfp8:dialect=systems-scaling"},
        {"nvfp4", "nvfp4:outer=row"},
        {"nvfp4:outer=4x32", "nvfp4:outer=2x32,dialect=te"},
    };
    for (const auto& recipes : refused) {
        CAPTURE(recipes);
        CHECK_THROWS_AS(compare(model, recipes), base::error);
    }
}

TEST_CASE("every rule and dialect of an element format is compared by default") {
    const auto has = [](const std::vector<codec::recipe>& all, const std::string& text) {
        const codec::recipe r = codec::parse_recipe(text);
        return std::find(all.begin(), all.end(), r) != all.end();
    };
    const auto e2m1 = rosetta::recipes_of_element("e2m1", "1x32");
    CHECK(has(e2m1, "mxfp4"));
    CHECK(has(e2m1, "mxfp4:scale=nearest"));
    CHECK(has(e2m1, "mxfp4:dialect=ggml"));
    CHECK(has(e2m1, "mxfp4:scale=rceil,dialect=torchao"));
    CHECK(has(e2m1, "mxfp4:scale=rceil,dialect=torchao@0.15"));
    CHECK(has(e2m1, "mxfp4:scale=search"));
    CHECK_FALSE(has(e2m1, "mxfp4:scale=stochastic,dialect=fbgemm"));
    const auto int8 = rosetta::recipes_of_element("int8", "1x16");
    CHECK(has(int8, "mxint8:block=1x16,dialect=microxcaling"));
    for (const codec::recipe& r : int8) CHECK(r.by->name != "torchao");
    CHECK_THROWS_AS(rosetta::recipes_of_element("e9m9", "1x32"), base::error);
    const auto nvfp4 = rosetta::recipes_of_element("e2m1", "1x16", "ue4m3");
    CHECK(has(nvfp4, "nvfp4:dialect=te"));
    CHECK(has(nvfp4, "nvfp4:dialect=ggml"));
    CHECK(has(nvfp4, "nvfp4:scale=single-level"));
    CHECK(has(nvfp4, "nvfp4:four_over_six=mae,bound=448,candidates=fp16,dialect=te"));
    CHECK(has(nvfp4, "nvfp4:four_over_six=abs_max"));
    const auto amdfp4 = rosetta::recipes_of_element("e2m1", "1x32", "ue5m3");
    CHECK(has(amdfp4, "amdfp4:block=1x32,dialect=quark"));
    for (const codec::recipe& r : amdfp4) CHECK(r.by->name != "ggml");
    for (const auto& all : {nvfp4, amdfp4}) {
        for (const codec::recipe& r : all) CHECK(codec::parse_recipe(codec::to_string(r)) == r);
    }
    CHECK(rosetta::recipes_of_element("int4", "1x16", "ue4m3").size() == 4);
    CHECK_THROWS_AS(rosetta::recipes_of_element("e2m1", "1x16", "f32"), base::error);
}

TEST_CASE("a pair of arrays tells which rules can have made it") {
    // Six blocks of 32 E2M1 codes: the largest is 6 in five of them and 3 in the fourth.
    std::vector<std::uint8_t> blocks(6 * 16, 0x77);
    for (std::size_t i = 3 * 16; i < 4 * 16; ++i) blocks[i] = 0xd5;
    std::vector<std::uint8_t> scales(6, 127);
    tests::memory_model file;
    file.add("w_blocks", tensor::dtype::u8, {2, 3, 16}, blocks);
    file.add("w_scales", tensor::dtype::u8, {2, 3}, scales);
    file.add("other_blocks", tensor::dtype::u8, {4}, std::vector<std::uint8_t>(4));
    const auto coded = rosetta::find_coded_tensors(file, {});
    REQUIRE(coded.size() == 1);
    CHECK(coded[0].name == "w");
    CHECK(coded[0].block == "1x32");
    const auto results = rosetta::find_origins(coded, nullptr, {});
    REQUIRE(results.size() == 1);
    CHECK(results[0].blocks == 6);
    CHECK(results[0].elements == 192);
    CHECK(results[0].zero_blocks == 0);
    const auto excluded = [&](const std::string& recipe) {
        const codec::recipe r = codec::parse_recipe(recipe);
        for (const rosetta::origin_row& row : results[0].rows) {
            if (row.recipe == r) return row.excluded;
        }
        throw std::out_of_range(recipe);
    };
    CHECK(excluded("mxfp4:scale=rceil") == 0);
    CHECK(excluded("mxfp4:dialect=te") == 0);
    CHECK(excluded("mxfp4") == 1);             // 3 S is below 4 S
    CHECK(excluded("mxfp4:scale=even") == 1);  // and below 3.5 S
    CHECK(excluded("mxfp4:scale=ceil") == 5);  // 6 S is beyond 4 S
    for (const rosetta::origin_row& row : results[0].rows) {
        if (row.excluded == 1) CHECK(row.first_excluded == 3);
    }
}

TEST_CASE("bytes whose halves are the other way round fit the original better so") {
    const std::vector<float> x = gaussian(8 * 64, 21);
    const tests::temporary_file file(".safetensors");
    const auto out = io::create_safetensors(file.path(), {{"w", tensor::dtype::f32, {8, 64}}}, {});
    out->write(0, 0, std::as_bytes(std::span(x)));
    out->commit();
    const engine::model original({file.path()}, {});
    const codec::block_params p = codec::params_of(codec::parse_recipe("mxfp4:scale=rceil"));
    for (const bool swapped : {false, true}) {
        std::vector<std::uint8_t> bytes, scales, codes(32);
        for (std::size_t at = 0; at < x.size(); at += 32) {
            codec::block_place place;
            place.cols = 32;
            scales.push_back(
                codec::quantize_block(p, std::span(x).subspan(at, 32), place, codes).scale_code);
            for (std::size_t i = 0; i < 32; i += 2) {
                const unsigned low = codes[swapped ? i + 1 : i], high = codes[swapped ? i : i + 1];
                bytes.push_back(static_cast<std::uint8_t>(low | high << 4));
            }
        }
        tests::memory_model coded;
        coded.add("w_blocks", tensor::dtype::u8, {8, 2, 16}, bytes);
        coded.add("w_scales", tensor::dtype::u8, {8, 2}, scales);
        const auto result =
            rosetta::find_origins(rosetta::find_coded_tensors(coded, {}), &original, {}).at(0);
        REQUIRE(result.nibbles);
        CAPTURE(swapped);
        for (const rosetta::origin_row& row : result.rows) {
            if (row.recipe != codec::parse_recipe("mxfp4:scale=rceil")) continue;
            CHECK(row.scales_differ == 0);
            CHECK((row.codes_differ == 0) == !swapped);
            CHECK((row.codes_differ_swapped == 0) == swapped);
        }
        const auto notes = pages::origin_sections({result}).at(0).notes;
        CHECK(std::ranges::any_of(notes, [](const report::note& n) {
                  return n.text.find("with the first code of a byte in its high half, 0 codes") !=
                         std::string::npos;
              }) == swapped);
    }
}

TEST_CASE("arrays that do not fit each other are refused") {
    tests::memory_model file;
    file.add("codes", tensor::dtype::u8, {30}, std::vector<std::uint8_t>(30));
    file.add("scales", tensor::dtype::u8, {7}, std::vector<std::uint8_t>(7));
    file.add("wide", tensor::dtype::f32, {2}, std::vector<float>(2));
    const auto find_them = [&](const char* element, const char* codes, const char* scales) {
        return rosetta::find_coded_tensors(file, {element, codes, scales});
    };
    CHECK_THROWS_AS(find_them("e2m1", "codes", "scales"), base::error);  // 60 codes, 7 scales
    CHECK_THROWS_AS(find_them("e2m1", "codes", "wide"), base::error);    // scales of four bytes
    CHECK_THROWS_AS(find_them("", "codes", "scales"), base::error);      // of unknown format
    CHECK_THROWS_AS(find_them("e2m1", "wide", "wide"), base::error);
    CHECK_THROWS_AS(find_them("e2m1", "codes", "nope"), base::error);
    CHECK(rosetta::find_coded_tensors(file, {}).empty());
}
