// SPDX-License-Identifier: Apache-2.0
// Layouts of published checkpoints around the usual ones: experts of modelopt, scales as numbers,
// tiles that a configuration states, factors of input channels, Keras. And what names alone say.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <set>

#include "libmx/engine/remarks.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/io/remarks.hpp"
#include "libmx/quantized/layouts.hpp"
#include "tests/io/fixture_values.hpp"
#include "tests/io/model_file.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

namespace {

constexpr float e2m1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

// Codes and scales that follow no pattern of a block.
unsigned code_at(std::size_t i) { return static_cast<unsigned>(i * 7 + i / 16 * 3 + i / 5) % 16; }

std::vector<unsigned> codes(std::size_t count) {
    std::vector<unsigned> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(code_at(i));
    return all;
}

// Two neighbours in a byte, the first in the low nibble; `step` elements apart.
std::string packed(const std::vector<unsigned>& of, std::size_t step = 1) {
    std::string bytes;
    for (std::size_t i = 0; i < of.size(); ++i) {
        if (i / step % 2 == 0) bytes += static_cast<char>(of[i] | of[i + step] << 4);
    }
    return bytes;
}

// E4M3 codes of 2^(i % 5): 0x38 is 1, 0x40 is 2.
std::string e4m3_powers(std::size_t count) {
    std::string bytes;
    for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(0x38 + i % 5 * 8);
    return bytes;
}
float power(std::size_t i) { return std::ldexp(1.0f, static_cast<int>(i % 5)); }

std::string ones(std::size_t count) { return repeated(0x38, count); }

std::vector<float> numbers(std::size_t count, float first = 0.75f) {
    std::vector<float> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(first + 0.25f * static_cast<float>(i));
    return all;
}

std::string bf16_bytes(const std::vector<float>& of) {
    std::string bytes;
    for (const float x : of) bytes += f32_bytes({x}).substr(2);
    return bytes;
}

engine::model opened(const scratch_dir& dir, const std::vector<stored>& arrays,
                     const engine::view_request& views = {}) {
    return model_of({write_model(dir / "m.safetensors", arrays)}, views);
}

std::vector<engine::skipped_tensor> left_out(const engine::model& m) {
    std::vector<engine::skipped_tensor> skipped;
    engine::numeric_only(m.select({}), skipped);
    return skipped;
}

engine::tensor_ref ref_of(const engine::model& m, const std::string& name) {
    return m.select({name}).front();
}

// Every part that is read alone is that of the whole.
void check_parts(const engine::model& m, const std::string& name) {
    const engine::tensor_ref t = ref_of(m, name);
    const auto source = t.file->open(t.index);
    std::string all(static_cast<std::size_t>(t.info().bytes), '\0');
    source->read(0, std::as_writable_bytes(std::span(all.data(), all.size())));
    for (std::size_t begin = 0; begin < all.size(); begin += 61) {
        for (const std::size_t size : {3, 40, 700}) {
            std::string part(std::min(size, all.size() - begin), '\0');
            source->read(begin, std::as_writable_bytes(std::span(part.data(), part.size())));
            REQUIRE(part == all.substr(begin, part.size()));
        }
    }
}

}  // namespace

TEST_CASE("fused experts of modelopt, packed along either axis", "[quantized]") {
    const scratch_dir dir;
    const std::vector<unsigned> c = codes(2 * 32 * 48);
    const std::string g = f32_bytes({0.375f});
    const engine::model m =
        opened(dir, {{"e.up", dtype::u8, {2, 32, 24}, packed(c)},
                     {"e.up_weight_scale", dtype::f8_e4m3, {2, 32, 3}, e4m3_powers(192)},
                     {"e.up_weight_scale_2", dtype::f32, {}, g},
                     {"e.up_input_scale", dtype::f32, {}, g},
                     {"e.down", dtype::u8, {2, 16, 48}, packed(c, 48)},
                     {"e.down_weight_scale", dtype::f8_e4m3, {2, 2, 48}, e4m3_powers(192)},
                     {"e.down_weight_scale_2", dtype::f32, {2}, f32_bytes({0.375f, 3})},
                     {"e.down_input_scale", dtype::f32, {}, g},
                     // 8-bit codes, whose scales alone run down.
                     {"e.eight", dtype::f8_e4m3, {2, 64, 5}, ones(640)},
                     {"e.eight_weight_scale",
                      dtype::f8_e8m0,
                      {2, 2, 5},
                      "\x7f\x80\x81\x82\x83\x84\x85"
                      "\x86\x87\x88\x7f\x80\x81\x82\x83"
                      "\x84\x85\x86\x87\x88"}});
    CHECK(m.select({}).size() == 3);
    const std::vector<float> up = values_in(m, "e.up"), down = values_in(m, "e.down");
    CHECK(info_in(m, "e.up")->shape == tensor::shape{2, 32, 48});
    CHECK(info_in(m, "e.down")->shape == tensor::shape{2, 32, 48});
    for (std::size_t i = 0; i < c.size(); ++i) {
        const std::size_t matrix = i / 1536, row = i % 1536 / 48, col = i % 48;
        REQUIRE(up[i] == e2m1[c[i]] * power(i / 16) * 0.375f);
        const std::size_t scale = matrix * 96 + row / 16 * 48 + col;
        REQUIRE(down[i] == e2m1[c[i]] * power(scale) * (matrix == 0 ? 0.375f : 3));
    }
    CHECK(info_in(m, "e.up")->sums_over.first == 2);
    CHECK(info_in(m, "e.down")->sums_over.first == 1);
    CHECK(info_in(m, "e.down")->sums_over.last == 2);
    has(info_in(m, "e.down")->remark, "16 codes down a column per scale");
    CHECK(info_in(m, "e.up")->stored_bytes == 1536 + 192 + 4 + 4);
    CHECK(info_in(m, "e.down")->stored_bytes == 1536 + 192 + 8 + 4);
    const std::vector<float> eight = values_in(m, "e.eight");
    CHECK(eight[0] == 1);
    CHECK(eight[31 * 5 + 4] == 16);
    CHECK(eight[32 * 5] == 32);
    CHECK(eight[64 * 5 + 1] == 2);
    for (const char* name : {"e.up", "e.down", "e.eight"}) check_parts(m, name);
}

TEST_CASE("block scales as numbers", "[quantized]") {
    const scratch_dir dir;
    const std::vector<unsigned> c = codes(4 * 64);
    const std::vector<float> scales{0.5f, 0.25f, 3, 0x1p-20f, 1, 2, 0.1f, 8};
    const engine::model m =
        opened(dir, {{"a", dtype::u8, {4, 32}, packed(c)},
                     {"a_scale", dtype::f32, {4, 2}, f32_bytes(scales)},
                     {"b", dtype::u8, {4, 32}, packed(c)},
                     {"b_scale", dtype::bf16, {4, 2}, bf16_bytes({1, 2, 4, 8, 1, 2, 4, 8})},
                     {"c_blocks", dtype::u8, {4, 2, 16}, packed(c)},
                     {"c_scales", dtype::f32, {4, 2}, f32_bytes(scales)},
                     {"d", dtype::f4, {4, 64}, packed(c)},
                     {"d_scale", dtype::f32, {4, 4}, f32_bytes(numbers(16))}});
    const auto a = values_in(m, "a"), b = values_in(m, "b"), d = values_in(m, "d");
    for (std::size_t i = 0; i < c.size(); ++i) {
        REQUIRE(a[i] == e2m1[c[i]] * scales[i / 32]);
        REQUIRE(b[i] == e2m1[c[i]] * std::ldexp(1.0f, static_cast<int>(i / 32 % 4)));
        REQUIRE(d[i] == e2m1[c[i]] * (0.75f + 0.25f * static_cast<float>(i / 16)));
    }
    CHECK(values_in(m, "c") == a);
    for (const char* name : {"a", "b", "c"}) CHECK(info_in(m, name)->layout == "mxfp4");
    CHECK(info_in(m, "d")->layout == "nvfp4");
}

TEST_CASE("scales of experts, in every shape that they have", "[quantized]") {
    for (const tensor::shape& shape : {tensor::shape{3}, {3, 1}, {3, 1, 1}}) {
        const scratch_dir dir;
        INFO(tensor::to_string(shape));
        const std::string g = f32_bytes({0.5f, 2, 0.75f});
        const std::vector<unsigned> c = codes(3 * 2 * 32);
        const engine::model m =
            opened(dir, {{"n.weight", dtype::u8, {3, 2, 16}, packed(c)},
                         {"n.weight_scale", dtype::f8_e4m3, {3, 2, 2}, e4m3_powers(12)},
                         {"n.weight_scale_2", dtype::f32, shape, g},
                         {"g.weight_packed", dtype::u8, {3, 2, 16}, packed(c)},
                         {"g.weight_scale", dtype::f8_e4m3, {3, 2, 2}, e4m3_powers(12)},
                         {"g.weight_global_scale", dtype::f32, shape, g},
                         {"f.weight", dtype::f8_e4m3, {3, 2, 4}, ones(24)},
                         {"f.weight_scale", dtype::f32, shape, g},
                         {"i.weight", dtype::i8, {3, 2, 4}, repeated(3, 24)},
                         {"i.weight_scale", dtype::f32, shape, g}});
        const float by[] = {0.5f, 2, 0.75f};
        const auto n = values_in(m, "n.weight"), divided = values_in(m, "g.weight");
        for (std::size_t i = 0; i < c.size(); ++i) {
            const float plain = e2m1[c[i]] * power(i / 16);
            REQUIRE(n[i] == plain * by[i / 64]);
            REQUIRE(divided[i] == static_cast<float>(static_cast<double>(plain) /
                                                     static_cast<double>(by[i / 64])));
        }
        const auto f = values_in(m, "f.weight"), eight = values_in(m, "i.weight");
        for (std::size_t i = 0; i < 24; ++i) {
            CHECK(f[i] == by[i / 8]);
            CHECK(eight[i] == 3 * by[i / 8]);
        }
        const auto scales = io::tensor_scales_of(ref_of(m, "n.weight"));
        REQUIRE(scales.size() == 1);
        CHECK(scales[0].name == "n.weight_scale_2");
        CHECK(scales[0].values == std::vector<float>{0.5f, 2, 0.75f});
        CHECK(engine::tensor_scale_text(ref_of(m, "n.weight")) == "x 0.5 to 2");
        CHECK(engine::tensor_scale_text(ref_of(m, "g.weight")) == "/ 0.5 to 2");
        CHECK(engine::tensor_scale_text(ref_of(m, "f.weight")) == "x 0.5 to 2");
        engine::view_request experts;
        experts.experts = {"n.weight"};
        const engine::model each =
            opened(dir,
                   {{"n.weight", dtype::u8, {3, 2, 16}, packed(c)},
                    {"n.weight_scale", dtype::f8_e4m3, {3, 2, 2}, e4m3_powers(12)},
                    {"n.weight_scale_2", dtype::f32, shape, g}},
                   experts);
        CHECK(engine::tensor_scale_text(ref_of(each, "n.weight.1")) == "x 2");
    }
    // Two scales of an expert, as of a fused gate: which rows they are of is not stated.
    const scratch_dir dir;
    const auto skipped =
        left_out(opened(dir, {{"n.weight", dtype::u8, {3, 2, 16}, repeated(1, 96)},
                              {"n.weight_scale", dtype::f8_e4m3, {3, 2, 2}, e4m3_powers(12)},
                              {"n.weight_scale_2", dtype::f32, {3, 2}, f32_bytes(numbers(6))}}));
    REQUIRE(skipped.size() == 3);
    has(skipped[0].reason, "n.weight_scale_2 (F32 3x2) is not one F32, or one for each matrix");
}

TEST_CASE("axes of one in scales, and parts of rows", "[quantized]") {
    const scratch_dir dir;
    const engine::model m =
        opened(dir, {{"p.weight", dtype::f8_e4m3, {256, 384}, ones(256 * 384)},
                     {"p.weight_scale", dtype::f32, {2, 1, 3, 1}, f32_bytes(numbers(6))},
                     {"c.weight", dtype::f8_e4m3, {3, 256}, ones(768)},
                     {"c.scale_weight", dtype::f32, {3, 4, 1}, f32_bytes(numbers(12))},
                     {"i.weight", dtype::i8, {3, 8}, repeated(2, 24)},
                     {"i.weight_scale", dtype::f32, {3, 4}, f32_bytes(numbers(12))},
                     {"k.weight", dtype::f8_e4m3, {3, 5}, ones(15)},
                     {"k.weight_scale", dtype::f32, {1, 5}, f32_bytes(numbers(5))},
                     {"l.weight", dtype::i8, {3, 5}, repeated(2, 15)},
                     {"l.weight_scale", dtype::f32, {1, 5}, f32_bytes(numbers(5))}});
    const auto p = values_in(m, "p.weight");
    CHECK(p[127 * 384 + 127] == 0.75f);
    CHECK(p[127 * 384 + 128] == 1);
    CHECK(p[128 * 384 + 383] == 2);
    CHECK(info_in(m, "p.weight")->layout == "fp8-128x128");
    const auto c = values_in(m, "c.weight"), i = values_in(m, "i.weight"),
               k = values_in(m, "k.weight");
    for (std::size_t at = 0; at < c.size(); ++at) {
        REQUIRE(c[at] == 0.75f + 0.25f * static_cast<float>(at / 64));
    }
    for (std::size_t at = 0; at < i.size(); ++at) {
        REQUIRE(i[at] == 2 * (0.75f + 0.25f * static_cast<float>(at / 2)));
    }
    for (std::size_t at = 0; at < k.size(); ++at) {
        REQUIRE(k[at] == 0.75f + 0.25f * static_cast<float>(at % 5));
        REQUIRE(values_in(m, "l.weight")[at] == 2 * k[at]);
    }
    CHECK(info_in(m, "c.weight")->layout == "fp8-parts");
    CHECK(info_in(m, "i.weight")->layout == "int8-parts");
    CHECK(info_in(m, "k.weight")->layout == "fp8-columns");
    CHECK(info_in(m, "k.weight")->sums_over.first == 0);
    CHECK(info_in(m, "l.weight")->layout == "int8-columns");
    for (const char* name : {"p.weight", "c.weight", "i.weight", "k.weight"}) check_parts(m, name);
    // A scale of each of five columns without the first axis might be meant for rows.
    const auto refused =
        left_out(opened(dir, {{"k.weight", dtype::f8_e4m3, {3, 5}, ones(15)},
                              {"k.weight_scale", dtype::f32, {5}, f32_bytes(numbers(5))}}));
    CHECK(refused.size() == 2);
}

TEST_CASE("tiles of any size: a configuration states them, or their grid shows them",
          "[quantized]") {
    const auto tiles = [](const std::string& config, const tensor::shape& grid, dtype scales,
                          dtype type = dtype::f8_e4m3) {
        const scratch_dir dir;
        if (!config.empty()) dir.file("config.json", config);
        const auto count = static_cast<std::size_t>(grid[0] * grid[1]);
        std::string bytes;
        for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(127 + i % 60);
        if (scales == dtype::f32) bytes = f32_bytes(numbers(count));
        const engine::model m =
            opened(dir, {{"w", type, {200, 100}, repeated(type == dtype::i8 ? 1 : 0x38, 20000)},
                         {"w_scale_inv", scales, grid, bytes}});
        const io::tensor_info* const w = info_in(m, "w");
        REQUIRE(w != nullptr);
        if (!w->note.empty()) return w->remark;
        check_parts(m, "w");
        return fmt::format("{} {} {}", w->layout, values_in(m, "w")[64 * 100 + 99], w->remark);
    };
    has(tiles("", {4, 2}, dtype::f32),
        "fp8-tiles 1.5 FP8 in tiles from w (F8_E4M3 200x100) and w_scale_inv (F32 4x2): 64x64 "
        "codes "
        "per scale, the only power of two that gives this grid");
    has(tiles("", {4, 2}, dtype::u8), "fp8-tiles 8 ");
    has(tiles("", {4, 2}, dtype::f32, dtype::i8), "int8-tiles 1.5 ");
    has(tiles("", {2, 1}, dtype::f32), "fp8-128x128 0.75 ");
    has(tiles(R"({"quantization_config": {"weight_block_size": [64, 64]}})", {4, 2}, dtype::f32),
        "64x64 codes per scale, as the configuration states");
    // Not square, and no power of two.
    has(tiles(R"({"quantization_config": {"weight_block_size": [48, 96]}})", {5, 2}, dtype::f32),
        "fp8-tiles 1.5 FP8 in tiles from w (F8_E4M3 200x100) and w_scale_inv (F32 5x2): 48x96 "
        "codes");
    has(tiles(R"({"quantization_config": {"weight_block_size": [48, 96]}})", {5, 2}, dtype::u8),
        "48x96 codes");
    // compressed-tensors
    has(tiles(R"({"quantization_config": {"config_groups": {"group_0": {"weights": )"
              R"({"block_structure": [32, 64], "num_bits": 8}}}}})",
              {7, 2}, dtype::f32),
        "32x64 codes");
    // A stated size comes before those that mx knows.
    has(tiles(R"({"quantization_config": {"weight_block_size": [100, 100]}})", {2, 1}, dtype::f32),
        "100x100 codes");
    // What is stated, but not this.
    has(tiles(R"({"quantization_config": {"weight_block_size": [16, 16]}})", {4, 2}, dtype::f32),
        "not decoded");
    has(tiles(R"({"weight_block_size": [48, 96]})", {5, 2}, dtype::f32), "not decoded");
    has(tiles("{", {5, 2}, dtype::f32), "not decoded");
}

TEST_CASE("factors of input channels are part of the weight", "[quantized]") {
    const scratch_dir dir;
    const std::vector<unsigned> c = codes(2 * 32);
    const std::vector<float> factors = numbers(32, 0.5f);
    const std::vector<stored> arrays{{"o.weight", dtype::u8, {2, 16}, packed(c)},
                                     {"o.weight_scale", dtype::f8_e4m3, {2, 2}, e4m3_powers(4)},
                                     {"o.weight_scale_2", dtype::f32, {1}, f32_bytes({0.375f})},
                                     {"o.input_scale", dtype::f32, {}, f32_bytes({7})},
                                     {"o.pre_quant_scale", dtype::f32, {32}, f32_bytes(factors)},
                                     // Down the columns: the factor is of a row.
                                     {"d", dtype::u8, {1, 16, 2}, packed(c, 2)},
                                     {"d_weight_scale", dtype::f8_e4m3, {1, 2, 2}, e4m3_powers(4)},
                                     {"d_pre_quant_scale", dtype::bf16, {32}, bf16_bytes(factors)},
                                     // SmoothQuant.
                                     {"s.weight", dtype::i8, {2, 32}, repeated(2, 64)},
                                     {"s.weight_scale", dtype::f32, {2}, f32_bytes({1, 3})},
                                     {"s.pre_quant_scale", dtype::f16, {32}, repeated(0x3c, 64)}};
    const engine::model m = opened(dir, arrays);
    CHECK(m.select({}).size() == 3);
    const auto o = values_in(m, "o.weight"), d = values_in(m, "d");
    for (std::size_t i = 0; i < c.size(); ++i) {
        REQUIRE(o[i] == e2m1[c[i]] * power(i / 16) * 0.375f * factors[i % 32]);
        REQUIRE(d[i] == e2m1[c[i]] * power(i / 32 * 2 + i % 2) * factors[i / 2]);
    }
    has(info_in(m, "o.weight")->remark, "times o.pre_quant_scale for each input channel");
    CHECK(info_in(m, "o.weight")->stored_bytes == 32 + 4 + 4 + 4 + 128);
    CHECK(info_in(m, "s.weight")->stored_bytes == 64 + 8 + 64);
    const auto scales = io::tensor_scales_of(ref_of(m, "o.weight"));
    REQUIRE(scales.size() == 2);
    CHECK(scales[1].name == "o.input_scale");
    CHECK(scales[1].use == "activations");
    CHECK(engine::tensor_scale_text(ref_of(m, "o.weight")) == "x 0.375");
    std::vector<stored> wrong(arrays.begin(), arrays.begin() + 5);
    wrong[4] = {"o.pre_quant_scale", dtype::f32, {2}, f32_bytes({1, 2})};
    const auto skipped = left_out(opened(dir, wrong));
    REQUIRE(skipped.size() == 5);
    has(skipped[0].reason, "o.pre_quant_scale (F32 2) is not a number for each input channel");
}

TEST_CASE("int8 layers of Keras", "[quantized][keras]") {
    const scratch_dir dir;
    std::string kernel;
    for (int i = 0; i < 24; ++i) kernel += static_cast<char>(i - 12);
    const auto of = [&](std::size_t i) { return static_cast<float>(i) - 12; };
    const engine::model m = opened(
        dir, {{"layers/dense/vars/0", dtype::i8, {4, 6}, kernel},
              {"layers/dense/vars/1", dtype::f32, {6}, f32_bytes(numbers(6, -1))},
              {"layers/dense/vars/2", dtype::f32, {6}, f32_bytes({1, 2, 4, 8, 16, 3})},
              {"layers/dense_1/vars/0", dtype::i8, {6, 4}, kernel},
              {"layers/dense_1/vars/1", dtype::f32, {4}, f32_bytes({1, 2, 4, 8})},
              {"layers/embedding/vars/0", dtype::i8, {4, 6}, kernel},
              {"layers/embedding/vars/1", dtype::f32, {4}, f32_bytes({1, 2, 4, 8})},
              {"q/query_dense/vars/0", dtype::i8, {4, 2, 3}, kernel},
              {"q/query_dense/vars/1", dtype::f32, {2, 3}, f32_bytes(numbers(6))},
              {"q/query_dense/vars/2", dtype::f32, {1, 2, 3}, f32_bytes({1, 2, 4, 8, 16, 32})}});
    const auto dense = values_in(m, "layers/dense/vars/0"),
               second = values_in(m, "layers/dense_1/vars/0"),
               embedding = values_in(m, "layers/embedding/vars/0"),
               query = values_in(m, "q/query_dense/vars/0");
    const float scales[] = {1, 2, 4, 8, 16, 3};
    for (std::size_t i = 0; i < 24; ++i) {
        CHECK(dense[i] == of(i) / scales[i % 6]);
        CHECK(second[i] == of(i) / scales[i % 4]);
        CHECK(embedding[i] == of(i) / scales[i / 6]);
        CHECK(query[i] == of(i) / std::ldexp(1.0f, static_cast<int>(i % 6)));
    }
    CHECK(info_in(m, "layers/dense/vars/0")->sums_over.first == 0);
    CHECK(info_in(m, "layers/dense/vars/0")->sums_over.last == 1);
    CHECK(info_in(m, "q/query_dense/vars/0")->sums_over.last == 1);
    CHECK(info_in(m, "layers/dense/vars/1") != nullptr);
    CHECK(info_in(m, "layers/dense/vars/2") == nullptr);
    has(info_in(m, "layers/dense/vars/0")->remark, "mode int8 is assumed");
    // Packed int4, and anything else: no numbers.
    const auto skipped =
        left_out(opened(dir, {{"layers/dense/vars/0", dtype::i8, {4, 3}, kernel.substr(12)},
                              {"layers/dense/vars/1", dtype::f32, {6}, f32_bytes(numbers(6))}}));
    REQUIRE(skipped.size() == 2);
    CHECK(skipped[0].tensor == "layers/dense/vars/0");
}

TEST_CASE("integers next to anything that is called a scale are codes", "[quantized]") {
    const std::vector<std::pair<std::string, std::string>> names{
        {"l/kernel", "l/kernel_scale"},
        {"l:weight", "l:scale"},
        {"l-weight", "l-weight-scale"},
        {"l.weight", "l.weightScale"},
        {"l.weight_int8", "l.weight_scales"},
        {"W_quantized", "W_scale"},
        {"l.w1", "l.w1.wscale"},
        {"l.experts.gate_up_proj", "l.experts.gate_up_proj:scales"},
        {"l.weight", "l.weight.absmax_"},
        {"encoderWeight", "encoderWeightScale"},
        {"l.data", "l.scale_fp8"},
        {"x.q", "x.q_scale_inverse"}};
    for (const auto& [codes_name, scales_name] : names) {
        for (const dtype type : {dtype::u8, dtype::i8, dtype::i16, dtype::i32}) {
            const scratch_dir dir;
            INFO(codes_name << " " << scales_name);
            // Scales of no shape that a layout has.
            const auto width = static_cast<std::size_t>(tensor::row_of(type).bits / 8);
            const engine::model m =
                opened(dir, {{codes_name, type, {6, 10}, repeated(1, 60 * width)},
                             {scales_name, dtype::f32, {7}, f32_bytes(numbers(7))},
                             {"other.norm", dtype::f32, {2}, f32_bytes({1, 2})}});
            const auto skipped = left_out(m);
            REQUIRE(skipped.size() == 2);
            CHECK(skipped[0].tensor == codes_name);
            has(skipped[0].reason, "codes that are not decoded");
            has(skipped[1].reason, "scales of " + codes_name);
        }
    }
    // FP8, too.
    const scratch_dir dir;
    CHECK(left_out(opened(dir, {{"l/kernel", dtype::f8_e4m3, {2, 3}, ones(6)},
                                {"l/kernel_scale", dtype::f32, {5}, f32_bytes(numbers(5))}}))
              .size() == 2);
    // Neighbours of another name are none.
    CHECK(left_out(opened(dir, {{"l.mask", dtype::u8, {2, 3}, ones(6)},
                                {"l.scale", dtype::f32, {2}, f32_bytes({1, 2})},
                                {"a.weight", dtype::f8_e4m3, {2, 3}, ones(6)},
                                {"a.input_scale", dtype::f32, {}, f32_bytes({1})},
                                {"logit_scale", dtype::f32, {}, f32_bytes({1})}}))
              .empty());
    // Bytes of scales alone.
    const auto alone = left_out(opened(dir, {{"w_scales", dtype::u8, {3, 2}, repeated(1, 6)}}));
    REQUIRE(alone.size() == 1);
    has(alone[0].reason, "scales without codes; w_scales (U8 3x2) has the name of scales");
}

TEST_CASE("a scale that siblings have is missed", "[quantized]") {
    const scratch_dir dir;
    std::vector<stored> arrays;
    for (const char* name : {"q", "k", "gate"}) {
        const std::string at = fmt::format("m.{}.weight", name);
        arrays.push_back({at, dtype::f8_e4m3, {2, 4}, ones(8)});
        if (std::string(name) != "gate") {
            arrays.push_back({at + "_scale_inv", dtype::f32, {1, 1}, f32_bytes({2})});
        }
    }
    for (int i = 0; i < 3; ++i) {
        const std::string at = fmt::format("m.experts.{}.weight", i);
        arrays.push_back({at, dtype::u8, {2, 16}, repeated(0x22, 32)});
        arrays.push_back({at + "_scale", dtype::f8_e4m3, {2, 2}, ones(4)});
        if (i != 1) arrays.push_back({at + "_scale_2", dtype::f32, {}, f32_bytes({0.5f})});
        if (i == 2) {
            arrays.push_back(
                {fmt::format("m.experts.{}.input_scale", i), dtype::f32, {}, f32_bytes({0.5f})});
        }
    }
    // Codes without any scale.
    arrays.push_back({"m.experts.9.weight", dtype::u8, {2, 16}, repeated(0x22, 32)});
    const engine::model m = opened(dir, arrays);
    CHECK(info_in(m, "m.gate.weight")->missing ==
          "m.gate.weight_scale_inv, which 2 tensors like it have");
    CHECK(info_in(m, "m.gate.weight")->note.empty());
    CHECK(info_in(m, "m.experts.1.weight")->missing ==
          "m.experts.1.weight_scale_2, which 2 tensors like it have");
    CHECK(values_in(m, "m.experts.1.weight").front() == 1);
    has(info_in(m, "m.experts.9.weight")->missing, "m.experts.9.weight_scale, which 3");
    CHECK(info_in(m, "m.experts.9.weight")->note == "codes that are not decoded");
    CHECK(info_in(m, "m.q.weight")->missing.empty());
    // Values do not depend on the scale of activations.
    CHECK(info_in(m, "m.experts.0.weight")->missing.empty());
    has(info_in(m, "m.experts.0.weight")->remark,
        "there is no m.experts.0.input_scale, which a tensor like it has");
    const auto remarks = engine::remarks_on(m.select({}));
    REQUIRE(remarks.size() == 3);
    CHECK(remarks[0] ==
          "m.gate.weight lacks m.gate.weight_scale_inv, which 2 tensors like it have");
    CHECK(engine::remarks_on(m.select({"m.q.weight"})).empty());
}

TEST_CASE("scales that fit both orders name both", "[quantized]") {
    const scratch_dir dir;
    const engine::model m = opened(dir, {{"x", dtype::f8_e4m3, {128, 128}, ones(128 * 128)},
                                         {"x_scale", dtype::u8, {128, 4}, repeated(127, 512)},
                                         {"y", dtype::f8_e4m3, {64, 128}, ones(64 * 128)},
                                         {"y_scale", dtype::u8, {64, 4}, repeated(127, 256)}});
    has(info_in(m, "x")->remark,
        "32 codes per scale byte; read row by row, though the scales fit the 128x4 order, too "
        "(--swizzled)");
    CHECK(info_in(m, "y")->remark.find("swizzled") == std::string::npos);
}

TEST_CASE("arrays of words that are not decoded are called what they are", "[quantized]") {
    const scratch_dir dir;
    const auto skipped =
        left_out(opened(dir, {{"af.weight", dtype::u32, {4, 4}, repeated(1, 64)},
                              {"af.scales", dtype::bf16, {4, 1}, repeated(1, 8)},
                              {"af.biases", dtype::bf16, {4, 1}, repeated(1, 8)}}));
    REQUIRE(skipped.size() == 3);
    for (const engine::skipped_tensor& s : skipped) {
        if (s.tensor == "af.scales") has(s.reason, "scales of af.weight");
        if (s.tensor == "af.biases") has(s.reason, "a part of af.weight");
    }
}

TEST_CASE("tensors never take more bytes than their files, in any layout", "[quantized]") {
    const scratch_dir dir;
    const auto fp8 = [](const char* name, const tensor::shape& shape, dtype scales,
                        const tensor::shape& grid, dtype type = dtype::f8_e4m3) {
        const auto bytes = [](dtype t, const tensor::shape& of) {
            return repeated(
                1, static_cast<std::size_t>(*tensor::byte_count(t, *tensor::element_count(of))));
        };
        return std::vector<stored>{
            {fmt::format("{}.weight", name), type, shape, bytes(type, shape)},
            {fmt::format("{}.weight_scale", name), scales, grid, bytes(scales, grid)},
            {fmt::format("{}.input_scale", name), dtype::f32, {}, bytes(dtype::f32, {})}};
    };
    std::vector<stored> arrays;
    for (const auto& some :
         {fp8("a", {2, 64}, dtype::u8, {2, 2}),
          fp8("b", {3, 32}, dtype::u8, {3, 1}, dtype::f6_e2m3),
          fp8("c", {200, 140}, dtype::f32, {2, 2}), fp8("d", {200, 140}, dtype::f8_e8m0, {7, 5}),
          fp8("e", {4, 256}, dtype::f8_e8m0, {4, 2}), fp8("f", {4, 3}, dtype::f32, {}),
          fp8("g", {4, 3}, dtype::f32, {4, 1}), fp8("h", {200, 140}, dtype::f32, {4, 3}),
          fp8("i", {4, 3}, dtype::f32, {1, 3}), fp8("j", {4, 64}, dtype::f32, {4, 4}),
          fp8("k", {4, 3}, dtype::f32, {1}, dtype::i8),
          fp8("l", {4, 3}, dtype::f32, {4}, dtype::i8),
          fp8("m", {200, 140}, dtype::f32, {4, 3}, dtype::i8),
          fp8("n", {4, 3}, dtype::f32, {1, 3}, dtype::i8),
          fp8("o", {4, 64}, dtype::f32, {4, 4}, dtype::i8),
          fp8("p", {4, 32}, dtype::f8_e4m3, {4, 4}, dtype::u8)}) {
        arrays.insert(arrays.end(), some.begin(), some.end());
    }
    arrays.push_back({"layers/dense/vars/0", dtype::i8, {4, 2}, repeated(1, 8)});
    arrays.push_back({"layers/dense/vars/1", dtype::f32, {2}, repeated(1, 8)});
    std::set<std::string> seen;
    for (const std::string& path :
         {write_model(dir / "m.safetensors", arrays), fixture("layouts.safetensors"),
          fixture("library_layouts.safetensors"), fixture("gptq_v2/model.safetensors"),
          fixture("gptq_p/model.safetensors"), fixture("deepseek_v4.safetensors"),
          fixture("gguf_blocks.gguf"), fixture("gguf.gguf"), fixture("quantized.safetensors")}) {
        INFO(path);
        const engine::model m = model_of({path});
        std::uint64_t sum = 0;
        for (const engine::tensor_ref& t : m.select({})) {
            INFO(t.info().name << " " << t.info().remark);
            CHECK(t.info().occupied_bytes() > 0);
            sum += t.info().occupied_bytes();
            seen.insert(t.info().layout);
        }
        std::uint64_t on_disk = 0;
        for (const engine::input_file& file : m.files()) on_disk += file.bytes;
        CHECK(sum <= on_disk);
        // What is stored is counted, too: no more than a header is missing.
        std::uint64_t arrays_of_files = 0;
        for (const auto& file : m.readers()) {
            for (const io::tensor_info& t : file->tensors()) arrays_of_files += t.occupied_bytes();
        }
        CHECK(sum == arrays_of_files);
        if (path.ends_with("gguf_blocks.gguf")) CHECK(m.select({}).size() > 10);
    }
    for (const io::quantized_layout& l : io::quantized_layouts) {
        INFO(l.name);
        CHECK(seen.contains(std::string(l.name)));
    }
}
