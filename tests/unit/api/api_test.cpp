// SPDX-License-Identifier: Apache-2.0
// Compares operations on arrays with the commands on files of the same values.
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/base/half.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/io/packed_read.hpp"
#include "libmx/studies/convert/convert.hpp"
#include "mx/mx.hpp"
#include "tests/catch.hpp"
#include "tests/memory_model.hpp"

namespace {

using namespace mx;

std::vector<float> values(std::size_t count) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::vector<float> x(count);
    for (float& v : x) v = normal(random);
    if (count > 300) {
        x[5] = 0;
        x[200] = std::numeric_limits<float>::quiet_NaN();
        x[300] = std::numeric_limits<float>::max();
    }
    return x;
}

std::vector<std::uint16_t> bf16_values(std::size_t count) {
    std::vector<std::uint16_t> x;
    for (const float v : values(count)) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &v, sizeof bits);
        x.push_back(static_cast<std::uint16_t>(bits >> 16));
    }
    return x;
}

const char* const all_kinds[] = {"mxfp4",
                                 "mxfp8:scale=rceil,block=1x16",
                                 "mxfp6:offset=fp16",
                                 "mxint8:block=4x4",
                                 "mxfp4:block=32x1,round=stochastic,seed=3",
                                 "mxfp8:axis=flat",
                                 "mxfp4:transform=hadamard",
                                 "mxint4:block=4x4,transform=random-hadamard",
                                 "nvfp4",
                                 "nvfp4:four_over_six=mse",
                                 "nvfp4:outer=row",
                                 "nvfp4:outer=row,dialect=te",
                                 "nvfp4:outer=col,block=16x1",
                                 "nvfp4:outer=16x32",
                                 "nvfp4:outer=32x48,block=16x16",
                                 "nvfp4:dialect=te",
                                 "fp8_1x128",
                                 "fp8_128x128:dialect=te",
                                 "mxfp4:dialect=torchao,scale=even",
                                 "mxfp8:dialect=microxcaling"};

template <typename T>
std::vector<T> array_of(const io::reader& file, const std::string& name) {
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
        const io::tensor_info& info = file.tensors()[i];
        if (info.name == name) {
            return io::read_run<T>(*file.open(i), 0, info.bytes / sizeof(T));
        }
    }
    FAIL(name);
    return {};
}

bool same(std::span<const float> a, std::span<const float> b) {
    if (a.size() != b.size()) return false;
    return a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace

TEST_CASE("an array and its file become the same codes, scales and values", "[api][slow]") {
    const std::vector<std::uint16_t> x = bf16_values(2 * 35 * 333);
    tests::memory_model model;
    model.add("w", dtype::bf16, {2, 35, 333}, x);
    const view in = view(x.data(), dtype::bf16, {2, 35, 333}).named("w");
    // Named after this process: tests may run twice at a time.
    const auto folder =
        std::filesystem::temp_directory_path() / ("mx-api-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    const std::string packed = (folder / "packed.safetensors").string();
    const std::string plain = (folder / "values.safetensors").string();
    const std::string unpacked = (folder / "unpacked.safetensors").string();
    for (const char* text : all_kinds) {
        CAPTURE(text);
        const recipe r = parse_recipe(text);
        convert::quantize_model(model.all(), r, true, packed, {});
        convert::quantize_model(model.all(), r, false, plain, {});
        const auto file = io::open_model(packed);
        for (const codec::backend& b : codec::backends()) {
            if (!b.available()) continue;
            CAPTURE(b.name);
            const run_options how{2, b.name};
            const blocks q = quantize(in, r, how);
            CHECK(q.packed_codes() == array_of<std::byte>(*file, "w.codes"));
            if (codec::scales_have_codes(r)) {
                const auto scales = array_of<std::uint8_t>(*file, "w.scales");
                CHECK(std::vector(q.scale_codes().begin(), q.scale_codes().end()) == scales);
            } else {
                CHECK(same(q.scales(), array_of<float>(*file, "w.scales")));
            }
            if (!q.offsets().empty()) {
                const auto offsets = array_of<std::uint16_t>(*file, "w.offsets");
                CHECK(std::vector(q.offsets().begin(), q.offsets().end()) == offsets);
            }
            if (q.tensor_scale()) {
                CHECK(*q.tensor_scale() == array_of<float>(*file, "w.global_scale").front());
            }
            CHECK(q.outer_scales().empty() == !codec::has_outer_areas(r));
            if (!q.outer_scales().empty()) {
                CHECK(same(q.outer_scales(), array_of<float>(*file, "w.global_scale")));
                CHECK(q.outer_scales().size() == *tensor::element_count(q.outer_grid()));
                if (r.by->id == codec::dialect_id::ocp) {
                    CHECK(same(dequantize(q, how), fake_quantize(in, r, how)));
                }
            }
            CHECK(same(fake_quantize(in, r, how), array_of<float>(*io::open_model(plain), "w")));
            convert::dequantize_model(*file, unpacked, {});
            const std::vector<float> d = array_of<float>(*io::open_model(unpacked), "w");
            CHECK(same(dequantize(q, how), d));
            const blocks again = blocks::from_parts(
                r, q.extents(), q.codes(), {q.scale_codes().begin(), q.scale_codes().end()},
                q.scales(), {q.offsets().begin(), q.offsets().end()}, q.tensor_scale(),
                q.outer_scales());
            CHECK(same(dequantize(again), d));
        }
    }
    std::filesystem::remove_all(folder);
}

TEST_CASE("figures of an array are those of mx analyze", "[api]") {
    const std::vector<float> x = values(64 * 96);
    tests::memory_model model;
    model.add("", dtype::f32, {64, 96}, x);
    analysis::analysis_request request;
    for (const char* text : all_kinds) request.recipes.push_back(parse_recipe(text));
    const analysis::analysis a = analysis::analyze(model.all(), request, {});
    const std::vector<row> rows = measure({x, 64, 96}, request.recipes);
    REQUIRE(rows.size() == a.results.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        CAPTURE(all_kinds[i]);
        CHECK(a.results[i].rmse == rows[i].rmse);
        CHECK(a.results[i].sqnr_db == rows[i].sqnr_db);
        CHECK(a.results[i].clamp_rate == rows[i].clamp_rate);
        CHECK(measure({x, 64, 96}, request.recipes[i]).rmse == rows[i].rmse);
    }
}

TEST_CASE("strides mean the same values", "[api]") {
    const std::vector<float> x = values(6 * 8 * 40);
    const recipe r = parse_recipe("mxfp4:scale=even");
    // Axes 2, 0, 1 of 6x8x40, the last one backwards.
    std::vector<float> copy;
    for (std::size_t k = 0; k < 40; ++k) {
        for (std::size_t i = 0; i < 6; ++i) {
            for (std::size_t j = 8; j-- > 0;) copy.push_back(x[(i * 8 + j) * 40 + k]);
        }
    }
    const view strided(x.data() + 7 * 40, dtype::f32, {40, 6, 8}, {1, 320, -40});
    const view plain(copy.data(), dtype::f32, {40, 6, 8});
    CHECK(same(strided.values(), copy));
    CHECK(same(fake_quantize(strided, r), fake_quantize(plain, r)));
    CHECK(measure(strided, r).rmse == measure(plain, r).rmse);
    // One row repeated eight times.
    const view repeated(x.data(), dtype::f32, {8, 40}, {0, 1});
    CHECK(repeated.values()[39 + 7 * 40] == x[39]);
    const view half(x.data(), dtype::f32, {3, 40}, {640, 1});
    CHECK(half.values()[40] == x[640]);
}

TEST_CASE("16-bit results are the float32 ones rounded once") {
    std::vector<float> x;
    for (int i = 0; i < 4096; ++i) {
        x.push_back(std::ldexp(std::sin(static_cast<float>(i)), i % 60 - 30));
    }
    x[70] = std::numeric_limits<float>::quiet_NaN();
    const view in(x, 64, 64);
    for (const char* text :
         {"mxfp8:scale=floor", "mxfp4", "mxint8", "nvfp4", "mxfp6:offset=fp16"}) {
        const recipe r = parse_recipe(text);
        const std::vector<float> wide = fake_quantize(in, r);
        std::vector<std::uint16_t> bf16(x.size()), f16(x.size());
        fake_quantize(in, r, dtype::bf16, bf16.data());
        fake_quantize(in, r, dtype::f16, f16.data());
        std::size_t differ = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const float b = base::float_from_bf16(bf16[i]), h = base::float_from_half(f16[i]);
            if (std::isnan(wide[i])) {
                differ += std::isnan(b) && std::isnan(h) ? 0 : 1;
                continue;
            }
            differ += base::bits_of(b) == base::bits_of(base::rounded_to_bf16(wide[i])) ? 0 : 1;
            const bool beyond = std::abs(wide[i]) >= 65520;
            differ += (beyond ? std::isinf(h) : f16[i] == base::half_saturated(wide[i])) ? 0 : 1;
        }
        CAPTURE(text);
        CHECK(differ == 0);
    }
    CHECK(in.values(65, 2).size() == 2);
    CHECK(in.values(65, 2).front() == x[65]);
    CHECK_THROWS_AS(in.values(4095, 2), error);
    CHECK_THROWS_AS(fake_quantize(in, parse_recipe("mxfp8"), dtype::f64, nullptr), error);
}

TEST_CASE("small and odd arrays", "[api]") {
    const recipe r = parse_recipe("mxfp4");
    const float one = 3;
    CHECK(fake_quantize(view(&one, dtype::f32, {}), r).at(0) == 3);
    CHECK(quantize(view(nullptr, dtype::f32, {0, 32}), r).codes().empty());
    CHECK(dequantize(quantize(view(nullptr, dtype::f32, {4, 0}), r)).empty());
    CHECK(std::isnan(measure(view(nullptr, dtype::f32, {0}), r).rmse));
    const std::uint8_t nibbles[] = {0x21, 0x43};  // E2M1: 0.5, 1, 1.5, 2
    CHECK(view(nibbles, dtype::f4, {4}).values() == std::vector<float>{0.5f, 1, 1.5f, 2});
    // In place.
    std::vector<float> x = values(4 * 64);
    const std::vector<float> expected = fake_quantize({x, 4, 64}, r);
    fake_quantize({x, 4, 64}, r, x);
    CHECK(same(x, expected));
}

TEST_CASE("outer scales of empty arrays, of one row and of partial tiles", "[api]") {
    const std::vector<float> x = values(20 * 40);
    struct example {
        const char* recipe;
        shape extents, outer;
    };
    for (const example& e : {example{"nvfp4:outer=row", {0, 64}, {0, 1}},
                             {"nvfp4:outer=row", {4, 0}, {4, 0}},
                             {"nvfp4:outer=col,block=16x1", {0, 3}, {0, 3}},
                             {"nvfp4:outer=16x32", {3, 0, 5}, {3, 0, 1}},
                             {"nvfp4:outer=row", {}, {1, 1}},
                             {"nvfp4:outer=row", {37}, {1, 1}},
                             {"nvfp4:outer=row,axis=flat", {4, 9}, {1, 1}},
                             {"nvfp4:outer=col,block=16x1", {1, 37}, {1, 37}},
                             {"nvfp4:outer=16x32", {20, 40}, {2, 2}},
                             {"nvfp4:outer=16x32", {2, 17, 20}, {2, 2, 1}},
                             {"nvfp4:outer=4096x4096", {20, 40}, {1, 1}}}) {
        const recipe r = parse_recipe(e.recipe);
        CAPTURE(e.recipe, tensor::to_string(e.extents));
        const view in(x.data(), dtype::f32, e.extents);
        const blocks q = quantize(in, r);
        CHECK(q.outer_grid() == e.outer);
        CHECK(q.outer_scales().size() == *tensor::element_count(e.outer));
        CHECK(same(dequantize(q), fake_quantize(in, r)));
    }
}

TEST_CASE("casts and products of arrays", "[api]") {
    const std::vector<float> x = {0.3f, 500, -500, 1e-9f};
    CHECK(cast(x, "e4m3") == std::vector<float>{0.3125f, 448, -448, 0});
    CHECK(std::isnan(cast(x, "e4m3", {format::rounding::rtne, false, 0})[1]));
    std::vector<float> a(2 * 32, 1), b(3 * 32, 2);
    b[0] = 4;
    const recipe r = parse_recipe("mxfp8");
    CHECK(multiply({a, 2, 32}, r, {b, 3, 32}, r, "exact") ==
          std::vector<float>{66, 64, 64, 66, 64, 64});
    CHECK(multiply({a, 2, 32}, r, {b, 3, 32}, r, "sm100.mxf8f6f4").front() == 66);
    // Rows of very different sizes are exact under separate scales: 2688 is 448 times 6.
    std::vector<float> rows(64, 2688), columns(64, 1344);
    for (std::size_t i = 0; i < 32; ++i) rows[i] = 2688 * 0x1p-30f, columns[i] = 2688 * 0x1p20f;
    const recipe by_row = parse_recipe("nvfp4:outer=row");
    constexpr float square = 32.0f * 2688 * 2688;
    CHECK(multiply({rows, 2, 32}, by_row, {columns, 2, 32}, by_row, "sm100.mxf4nvf4") ==
          std::vector<float>{square * 0x1p-10f, square * 0x1p-31f, square * 0x1p20f, square / 2});
}

TEST_CASE("what does not fit is refused in one line", "[api]") {
    const std::vector<float> x = values(64);
    const auto message = [](const auto& body) {
        try {
            body();
        } catch (const error& e) {
            return std::string(e.what());
        }
        return std::string("no error");
    };
    const recipe r = parse_recipe("mxfp4");
    using Catch::Matchers::Contains;
    CHECK_THAT(message([&] { view(x, 3, 20); }), Contains("64 values do not make 3 x 20"));
    CHECK_THAT(message([&] { view(x.data(), dtype::f32, {8, 8}, {1}); }), Contains("1 strides"));
    CHECK_THAT(message([&] { quantize(x, r, {0, "avx9"}); }), Contains("avx9"));
    CHECK_THAT(message([&] { quantize(x, parse_recipe("mxfp4:axis=2")); }), Contains("axis"));
    CHECK_THAT(message([&] {
                   quantize(x, parse_recipe("mxfp8:dialect=systems-scaling,scale=floor-bump"));
               }),
               Contains("differs inside a block"));
    CHECK_THAT(message([&] { cast(x, "e4m4"); }), Contains("e4m3"));
    CHECK_THAT(message([&] {
                   multiply({x, 2, 32}, r, {x, 4, 16}, r, "exact");
               }),
               Contains("32 and 16"));
    const std::uint8_t flags[] = {0, 1};
    CHECK_THAT(message([&] { measure(view(flags, dtype::boolean, {2}), r); }), Contains("BOOL"));
    std::vector<float> room(3);
    CHECK_THAT(message([&] { fake_quantize(x, r, room); }), Contains("64 values"));
    CHECK_THAT(message([&] { blocks::from_parts(r, {64}, {}, {}, {}); }), Contains("64 codes"));
    const recipe by_row = parse_recipe("nvfp4:outer=row");
    const auto rows = [&](std::vector<float> outer_scales) {
        const std::vector<std::uint8_t> codes(64), scales(4);
        return blocks::from_parts(by_row, {2, 32}, codes, scales, {}, {}, {}, outer_scales);
    };
    CHECK_THAT(message([&] { rows({1}); }), Contains("2 outer scales are required"));
    CHECK_THAT(message([&] {
                   dequantize(rows({1, std::numeric_limits<float>::quiet_NaN()}));
               }),
               Contains("finite and not negative"));
    CHECK(dequantize(rows({1, 1})) == std::vector<float>(64));
    for (const char* unfit : {"mxfp4:axis=0", "nvfp4:outer=given:scales.npy"}) {
        const recipe bad = parse_recipe(unfit);
        CHECK_THAT(message([&] {
                       multiply({x, 2, 32}, bad, {x, 2, 32}, bad, "exact");
                   }),
                   Contains(unfit));
    }
    const recipe tiles = parse_recipe("nvfp4:outer=1x16");
    CHECK_THAT(message([&] {
                   multiply({x, 2, 32}, tiles, {x, 2, 32}, by_row, "sm100.mxf4nvf4");
               }),
               Contains("differ along K"));
}
