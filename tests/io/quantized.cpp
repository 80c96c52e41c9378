// SPDX-License-Identifier: Apache-2.0
// Quantized checkpoints: every layout with hand-made bytes and values computed here.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>

#include "libmx/base/bits.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/io/model_config.hpp"
#include "libmx/quantized/layouts.hpp"
#include "libmx/studies/convert/engine_layouts.hpp"
#include "tests/io/fixture_values.hpp"
#include "tests/io/model_file.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

namespace {

constexpr std::array<float, 16> fp4_table{0,     0.5f,  1,  1.5f,  2,  3,  4,  6,
                                          -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

// 0x10 0x32 0x54 ...: the codes 0 to 15 in order, low nibble first, twice.
const std::string all_fp4 = std::string("\x10\x32\x54\x76\x98\xba\xdc\xfe", 8) +
                            std::string("\x10\x32\x54\x76\x98\xba\xdc\xfe", 8);

bool same(const std::vector<float>& got, const std::vector<float>& want) {
    if (got.size() != want.size()) return false;
    for (std::size_t i = 0; i < got.size(); ++i) {
        const bool nan = std::isnan(got[i]) && std::isnan(want[i]);
        if (!nan && base::bits_of(got[i]) != base::bits_of(want[i])) {
            INFO(i << ": " << got[i] << " is not " << want[i]);
            CHECK(false);
            return false;
        }
    }
    return true;
}

std::vector<float> fp4_values(std::size_t elements, double factor) {
    std::vector<float> v;
    for (std::size_t i = 0; i < elements; ++i) {
        v.push_back(static_cast<float>(static_cast<double>(fp4_table[i % 16]) * factor));
    }
    return v;
}

void append(std::vector<float>& to, const std::vector<float>& more) {
    to.insert(to.end(), more.begin(), more.end());
}

std::string remark_of(const engine::model& m, const std::string& name) {
    const io::tensor_info* info = info_in(m, name);
    REQUIRE(info != nullptr);
    return info->remark;
}

}  // namespace

TEST_CASE("MXFP4 in blocks, as gpt-oss keeps it", "[quantized]") {
    const scratch_dir dir;
    // Scales 2^0, 2^1, 2^-127 and NaN.
    const std::string path =
        write_model(dir / "m.safetensors",
                    {{"w_blocks", dtype::u8, {2, 2, 16}, all_fp4 + all_fp4 + all_fp4 + all_fp4},
                     {"w_scales", dtype::u8, {2, 2}, std::string("\x7f\x80\x00\xff", 4)},
                     {"bias", dtype::f32, {1}, f32_bytes({3})}});
    const engine::model m = model_of({path});
    const io::tensor_info* w = info_in(m, "w");
    REQUIRE(w != nullptr);
    CHECK(w->shape == tensor::shape{2, 64});
    CHECK(w->layout == "mxfp4");
    CHECK(static_cast<int>(w->type) == static_cast<int>(dtype::f32));
    CHECK(w->stored_bytes == 68);
    CHECK(w->remark ==
          "MXFP4 from w_blocks (U8 2x2x16) and w_scales (U8 2x2): 32 codes per scale byte");
    CHECK(info_in(m, "w_blocks") == nullptr);
    CHECK(info_in(m, "w_scales") == nullptr);
    CHECK(info_in(m, "bias") != nullptr);
    std::vector<float> want = fp4_values(32, 1);
    append(want, fp4_values(32, 2));
    append(want, fp4_values(32, std::ldexp(1.0, -127)));
    append(want, std::vector<float>(32, std::numeric_limits<float>::quiet_NaN()));
    CHECK(same(values_in(m, "w"), want));

    engine::view_request raw;
    raw.raw = true;
    const engine::model stored_as = model_of({path}, raw);
    CHECK(info_in(stored_as, "w") == nullptr);
    CHECK(info_in(stored_as, "w_blocks") != nullptr);
}

TEST_CASE("decoded values do not depend on how they are read", "[quantized]") {
    const scratch_dir dir;
    const engine::model m = model_of(
        {write_model(dir / "m.safetensors",
                     {{"w.blocks", dtype::u8, {3, 16}, all_fp4 + all_fp4 + all_fp4},
                      {"w.scales", dtype::f8_e8m0, {3}, std::string("\x7e\x81\x90", 3)}})});
    const std::vector<float> all = values_in(m, "w");
    const std::string bytes = f32_bytes(all);
    const engine::tensor_ref t = m.select({}).front();
    const auto source = t.file->open(t.index);
    for (std::size_t begin = 0; begin < bytes.size(); begin += 7) {
        for (const std::size_t size : {1, 3, 4, 9, 130}) {
            const std::size_t count = std::min(size, bytes.size() - begin);
            std::string part(count, '\0');
            source->read(begin, std::as_writable_bytes(std::span(part.data(), count)));
            REQUIRE(part == bytes.substr(begin, count));
        }
    }
}

TEST_CASE("MXFP8, MXFP6 and MXFP4 with scales along the last axis", "[quantized]") {
    const scratch_dir dir;
    // 40 columns: a block of 32 and one of 8. E4M3 0x38 is 1, 0x7e 448; E5M2 0x3c is 1.
    std::string e4m3 = repeated(0x38, 80);
    e4m3[39] = '\x7e';
    // E2M3 code i of four in three bytes: 1 (0x08), 7.5 (0x1f), -1 (0x28), 0.125 (0x01).
    const unsigned word = 0x08u | 0x1fu << 6 | 0x28u << 12 | 0x01u << 18;
    std::string fp6;
    for (int i = 0; i < 8; ++i) fp6 += little(word, 3);
    const engine::model m = model_of({write_model(
        dir / "m.safetensors", {{"a", dtype::f8_e4m3, {2, 40}, e4m3},
                                {"a_scale", dtype::u8, {2, 2}, std::string("\x7f\x81\x80\xfe", 4)},
                                {"b", dtype::f8_e5m2, {32}, repeated(0x3c, 32)},
                                {"b_scale_inv", dtype::f8_e8m0, {1}, "\x78"},
                                {"c", dtype::f6_e2m3, {1, 32}, fp6},
                                {"c_scales", dtype::u8, {1, 1}, "\x80"},
                                {"d", dtype::f4, {1, 32}, all_fp4},
                                {"d_scales", dtype::f8_e8m0, {1, 1}, "\x7d"},
                                {"e_packed", dtype::u8, {1, 16}, all_fp4},
                                {"e_scale", dtype::u8, {1, 1}, "\x7c"}})});
    std::vector<float> a(32, 1.0f);
    append(a, std::vector<float>(8, 4.0f));
    a[39] = 4 * 448;
    append(a, std::vector<float>(32, 2.0f));
    append(a, std::vector<float>(8, std::ldexp(1.0f, 127)));
    CHECK(same(values_in(m, "a"), a));
    CHECK(info_in(m, "a")->layout == "mxfp8");
    CHECK(same(values_in(m, "b"), std::vector<float>(32, std::ldexp(1.0f, 0x78 - 127))));
    std::vector<float> c;
    for (int i = 0; i < 8; ++i) append(c, {2, 15, -2, 0.25f});
    CHECK(same(values_in(m, "c"), c));
    CHECK(info_in(m, "c")->layout == "mxfp6");
    CHECK(same(values_in(m, "d"), fp4_values(32, 0.25)));
    CHECK(same(values_in(m, "e"), fp4_values(32, 0.125)));
    CHECK(info_in(m, "e")->shape == tensor::shape{1, 32});
}

TEST_CASE("NVFP4 under both conventions of the tensor scale", "[quantized]") {
    const scratch_dir dir;
    const float g = 0.0013427734375f + 0x1p-30f;
    const float inverse = 745.3f;
    // E4M3 scales 0x38 = 1 and 0x45 = 3.25.
    const std::string scales("\x38\x45", 2);
    const engine::model m = model_of({write_model(
        dir / "m.safetensors", {{"a.weight", dtype::u8, {1, 16}, all_fp4},
                                {"a.weight_scale", dtype::f8_e4m3, {1, 2}, scales},
                                {"a.weight_scale_2", dtype::f32, {}, f32_bytes({g})},
                                {"b.weight_packed", dtype::u8, {1, 16}, all_fp4},
                                {"b.weight_scale", dtype::f8_e4m3, {1, 2}, scales},
                                {"b.weight_global_scale", dtype::f32, {1}, f32_bytes({inverse})},
                                {"c", dtype::f4, {2, 16}, all_fp4},
                                {"c_scale", dtype::f8_e4m3, {2, 1}, scales}})});
    std::vector<float> a = fp4_values(16, static_cast<double>(g));
    append(a, fp4_values(16, 3.25 * static_cast<double>(g)));
    std::uint64_t inexact = 0;
    CHECK(same(values_in(m, "a.weight", &inexact), a));
    // 0.5, 1, 2, 4 times g are float32; times 1.5, 3 and 6 needs one bit more than g has.
    std::uint64_t expected = 0;
    for (const double s : {1.0, 3.25}) {
        for (const float q : fp4_table) {
            const double exact = static_cast<double>(q) * s * static_cast<double>(g);
            expected += static_cast<double>(static_cast<float>(exact)) != exact ? 1u : 0u;
        }
    }
    CHECK(expected > 0);
    CHECK(inexact == expected);
    has(remark_of(m, "a.weight"), "multiplied by a.weight_scale_2 (modelopt)");

    std::vector<float> b;
    for (const double s : {1.0, 3.25}) {
        for (const float q : fp4_table) {
            b.push_back(
                static_cast<float>(static_cast<double>(q) * s / static_cast<double>(inverse)));
        }
    }
    CHECK(same(values_in(m, "b.weight"), b));
    has(remark_of(m, "b.weight"), "divided by b.weight_global_scale (compressed-tensors)");

    std::vector<float> c = fp4_values(16, 1);
    append(c, fp4_values(16, 3.25));
    CHECK(same(values_in(m, "c"), c));
    CHECK(static_cast<int>(info_in(m, "c")->type) == static_cast<int>(dtype::f32));
    CHECK(static_cast<int>(info_in(m, "a.weight")->type) == static_cast<int>(dtype::f64));
}

TEST_CASE("FP8 and INT8 with scales of tiles, rows and the whole tensor", "[quantized]") {
    const scratch_dir dir;
    const engine::model m = model_of(
        {write_model(dir / "m.safetensors",
                     {{"t", dtype::f8_e4m3, {130, 129}, repeated(0x38, 130 * 129)},
                      {"t_scale_inv", dtype::f32, {2, 2}, f32_bytes({3, 5, 7, 0.1f})},
                      {"r", dtype::f8_e4m3, {2, 3}, repeated(0xb8, 6)},
                      {"r_scale", dtype::bf16, {2, 1}, std::string("\x40\x40\x80\x3f", 4)},
                      {"v", dtype::f8_e5m2, {2, 3}, repeated(0x3c, 6)},
                      {"v_scale", dtype::f32, {2}, f32_bytes({8, 9})},
                      {"w", dtype::f8_e4m3, {2, 3}, repeated(0x38, 6)},
                      {"w_scale", dtype::f32, {}, f32_bytes({0.25f})},
                      {"i", dtype::i8, {2, 2}, std::string("\x01\x80\x7f\xff", 4)},
                      {"i_scale", dtype::f16, {2, 1}, std::string("\x00\x3c\x00\x38", 4)}})});
    const std::vector<float> t = values_in(m, "t");
    CHECK(t[0] == 3.0f);
    CHECK(t[127 * 129 + 127] == 3.0f);
    CHECK(t[128] == 5.0f);
    CHECK(t[128 * 129] == 7.0f);
    CHECK(t[129 * 129 + 128] == 0.1f);
    CHECK(info_in(m, "t")->layout == "fp8-128x128");
    CHECK(same(values_in(m, "r"), {-3, -3, -3, -1, -1, -1}));
    CHECK(info_in(m, "r")->layout == "fp8-rows");
    CHECK(same(values_in(m, "v"), {8, 8, 8, 9, 9, 9}));
    CHECK(same(values_in(m, "w"), std::vector<float>(6, 0.25f)));
    CHECK(info_in(m, "w")->layout == "fp8-tensor");
    CHECK(same(values_in(m, "i"), {1, -128, 63.5f, -0.5f}));
    CHECK(info_in(m, "i")->layout == "int8-rows");
}

TEST_CASE("FP8 in tiles of 32x32 and in runs of 128, under names of their own", "[quantized]") {
    const scratch_dir dir;
    const std::string ones = repeated(0x38, 40 * 160);
    const engine::model m = model_of({write_model(
        dir / "m.safetensors",
        {{"t.weight", dtype::f8_e4m3, {40, 160}, ones},
         {"t.scale",
          dtype::f8_e8m0,
          {2, 5},
          std::string("\x7f\x80\x81\x82\x83\x84\x85\x86\x87\x88", 10)},
         {"r.weight", dtype::f8_e4m3, {40, 160}, ones},
         {"r.scale", dtype::f8_e8m0, {40, 2}, repeated(0x80, 79) + "\x82"},
         {"f._weight_qdata", dtype::f8_e4m3, {40, 160}, ones},
         {"f._weight_scale", dtype::f32, {40, 2}, f32_bytes(std::vector<float>(80, 3))},
         {"m.weight", dtype::f8_e4m3, {2, 4}, repeated(0x38, 8)},
         {"m.qscale_weight", dtype::f32, {}, f32_bytes({5})},
         {"c.weight", dtype::f8_e4m3, {2, 4}, repeated(0x38, 8)},
         {"c.scale_weight", dtype::f32, {1}, f32_bytes({7})},
         {"q.weight._data", dtype::i8, {2, 4}, repeated(2, 8)},
         {"q.weight._scale", dtype::f16, {2, 1}, std::string("\x00\x3c\x00\x40", 4)},
         {"n._weight_qdata", dtype::u8, {1, 8}, repeated(0x22, 8)},
         {"n._weight_scale", dtype::f8_e4m3, {1, 1}, "\x38"},
         {"n._weight_per_tensor_scale", dtype::f32, {}, f32_bytes({0.5f})}})});
    CHECK(m.select({}).size() == 7);
    const std::vector<float> t = values_in(m, "t.weight");
    CHECK(t[31 * 160 + 31] == 1);
    CHECK(t[32] == 2);
    CHECK(t[32 * 160] == 32);
    CHECK(t[39 * 160 + 159] == 512);
    CHECK(info_in(m, "t.weight")->layout == "fp8-32x32");
    CHECK(values_in(m, "r.weight")[39 * 160 + 127] == 2);
    CHECK(values_in(m, "r.weight")[39 * 160 + 128] == 8);
    CHECK(info_in(m, "r.weight")->layout == "fp8-1x128");
    CHECK(values_in(m, "f.weight")[17] == 3);
    CHECK(values_in(m, "m.weight")[3] == 5);
    CHECK(values_in(m, "c.weight")[3] == 7);
    CHECK(same(values_in(m, "q.weight"), {2, 2, 2, 2, 4, 4, 4, 4}));
    CHECK(same(values_in(m, "n.weight"), std::vector<float>(16, 0.5f)));
}

TEST_CASE("integers of 4 and 8 bits in words", "[quantized]") {
    const scratch_dir dir;
    // The nibbles 0 to 15, from the low end of each word on, represent -8 to 7.
    const std::string nibbles("\x10\x32\x54\x76\x98\xba\xdc\xfe", 8);
    const engine::model m = model_of({write_model(
        dir / "m.safetensors",
        {{"w_packed", dtype::i32, {1, 2}, nibbles},
         {"w_scale", dtype::f32, {1, 2}, f32_bytes({2, 0.1f})},
         {"w_shape", dtype::i64, {2}, little(1, 8) + little(16, 8)},
         {"b_packed", dtype::i32, {2, 1}, std::string("\x00\x7f\x80\xff\x81\x82\x7e\x80", 8)},
         {"b_scale", dtype::f16, {2, 1}, std::string("\x00\x3c\x00\x38", 4)},
         {"b_shape", dtype::i64, {2}, little(2, 8) + little(4, 8)}})});
    std::vector<float> want;
    for (int i = -8; i < 0; ++i) want.push_back(2.0f * static_cast<float>(i));
    for (int i = 0; i < 8; ++i) want.push_back(0.1f * static_cast<float>(i));
    CHECK(same(values_in(m, "w"), want));
    CHECK(info_in(m, "w")->layout == "pack-quantized");
    has(remark_of(m, "w"), "4 bits per code, 8 codes per scale");
    CHECK(same(values_in(m, "b"), {-128, -1, 0, 127, 0.5f, 1, -1, 0}));
    has(remark_of(m, "b"), "8 bits per code, 4 codes per scale");
    // The array of extents is no longer a tensor of the model.
    CHECK(m.select({}).size() == 2);
}

TEST_CASE("codes and scales in different files", "[quantized]") {
    const scratch_dir dir;
    const stored codes{"w_blocks", dtype::u8, {1, 16}, all_fp4};
    const stored scales{"w_scales", dtype::u8, {1}, "\x80"};
    const std::string one = write_model(dir / "1.safetensors", {codes});
    const std::string two = write_model(dir / "2.safetensors", {scales});
    const std::string three =
        write_model(dir / "3.safetensors", {{"w_scales", dtype::u8, {1}, "\x81"}});
    const engine::model both = model_of({one, two});
    CHECK(same(values_in(both, "w"), fp4_values(32, 2)));
    has(remark_of(both, "w"), "of " + two);
    // The order of the files does not matter.
    CHECK(same(values_in(model_of({two, one}), "w"), fp4_values(32, 2)));
    // Two candidates, none of them next to the codes.
    const engine::model many = model_of({one, two, three});
    has(remark_of(many, "w_blocks"), "2 files have an array w_scales");
    // Scales next to the codes take precedence.
    const std::string four = write_model(dir / "4.safetensors", {codes, scales});
    CHECK(same(values_in(model_of({three, four}), "w"), fp4_values(32, 2)));
}

TEST_CASE("DeepSeek-V4's layout", "[quantized]") {
    // Values that torch decoded; E8M0 bytes 0, 1, 120, 254 and 255, NaN codes, a tile that is cut
    // off, scales of F32.
    const engine::model m = model_of({fixture("deepseek_v4.safetensors")});
    const auto decoded = io::open_model(fixture("deepseek_v4_values.safetensors"));
    REQUIRE(decoded->tensors().size() == 3);
    for (const io::tensor_info& t : decoded->tensors()) {
        INFO(t.name);
        const io::tensor_info* const got = info_in(m, t.name);
        REQUIRE(got != nullptr);
        CHECK(got->shape == t.shape);
        std::vector<float> values = values_in(m, t.name);
        std::vector<float> want = mx::test::values(*decoded, t.name);
        // The release decodes code 8 to +0, which is -0 here.
        for (std::vector<float>* of : {&values, &want}) {
            for (float& x : *of) x += 0.0f;
        }
        CHECK(same(values, want));
    }
    CHECK(info_in(m, "layers.0.ffn.experts.2.w1.weight")->layout == "mxfp4");
    CHECK(info_in(m, "layers.3.attn.wo_a.weight")->layout == "fp8-128x128");
    CHECK(info_in(m, "layers.0.attn.wq_b.weight")->layout == "fp8-128x128");
    // Three weights, and a table of indices.
    CHECK(m.select({}).size() == 4);
}

TEST_CASE("codes that are not decoded are left out, and so are their scales", "[quantized]") {
    const scratch_dir dir;
    const auto left_out = [&dir](const std::vector<stored>& arrays,
                                 const engine::view_request& views = {}) {
        const engine::model m = model_of({write_model(dir / "m.safetensors", arrays)}, views);
        std::vector<engine::skipped_tensor> skipped;
        engine::numeric_only(m.select({}), skipped);
        return skipped;
    };
    for (const dtype type : {dtype::i8, dtype::u8}) {
        const std::vector<stored> arrays{{"w.weight", type, {2, 16}, repeated(1, 32)},
                                         {"w.scale", dtype::f8_e8m0, {2, 3}, repeated(127, 6)},
                                         {"other", type, {2, 16}, repeated(1, 32)}};
        const auto skipped = left_out(arrays);
        REQUIRE(skipped.size() == 2);
        CHECK(skipped[0].tensor == "w.weight");
        has(skipped[0].reason, "codes that are not decoded; w.weight (");
        has(skipped[0].reason, "MXFP4 calls for scales 2x1");
        CHECK(skipped[1].tensor == "w.scale");
        CHECK(skipped[1].reason == "scales of w.weight, which is not decoded");
        engine::view_request raw;
        raw.raw = true;
        CHECK(left_out(arrays, raw).empty());
    }
    // Words of integers are codes too, for any --integers.
    engine::view_request integers;
    integers.integers = true;
    const auto words = left_out(
        {{"w_packed", dtype::i32, {1, 4}, repeated(1, 16)}, {"w_scale", dtype::bf16, {1, 1}, "ab"}},
        integers);
    REQUIRE(words.size() == 2);
    has(words[0].reason, "require two axes and w_shape (I64 2)");
    // So is what belongs to codes: here a tensor scale of two numbers.
    const auto scaled = left_out({{"w", dtype::u8, {1, 16}, all_fp4},
                                  {"w_scale", dtype::f8_e4m3, {1, 2}, "ab"},
                                  {"w_scale_2", dtype::f32, {2}, repeated(0, 8)}});
    REQUIRE(scaled.size() == 3);
    CHECK(scaled[2].reason == "a part of w, which is not decoded");
    // FP8 under scales that are not understood has no values either.
    const auto fp8 = left_out({{"w", dtype::f8_e4m3, {2, 64}, repeated(1, 128)},
                               {"w_scale", dtype::u8, {2, 3}, "abcdef"}});
    REQUIRE(fp8.size() == 2);
    has(fp8[0].reason, "MXFP8 calls for scales 2x2");
    CHECK(fp8[1].tensor == "w_scale");
}

TEST_CASE("integers that look like codes are no numbers, whatever their dtype", "[quantized]") {
    const scratch_dir dir;
    const auto left_out = [&dir](const std::vector<stored>& arrays) {
        std::vector<engine::skipped_tensor> skipped;
        const engine::model m = model_of({write_model(dir / "m.safetensors", arrays)});
        CHECK(engine::numeric_only(m.select({}), skipped).empty());
        return skipped;
    };
    // MLX's words of 8-bit integers, which have the shapes of FP8 in runs of 128, with a scale per
    // row, and with one scale.
    for (const auto& [rows, groups] : {std::pair(2u, 2u), {2u, 1u}, {1u, 1u}}) {
        const tensor::shape scales{rows, groups};
        const std::size_t words = std::size_t{32} * rows * groups;
        const auto skipped =
            left_out({{"l.weight", dtype::u32, {rows, 32 * groups}, repeated(0x38, 4 * words)},
                      {"l.scales", dtype::bf16, scales, repeated(1, 2 * rows * groups)},
                      {"l.biases", dtype::bf16, scales, repeated(1, 2 * rows * groups)}});
        REQUIRE(skipped.size() == 3);
        has(skipped[0].reason, "MLX's affine words, which mx does not decode");
    }
    // Integers of a dtype that no layout has.
    for (const dtype type : {dtype::i16, dtype::u16}) {
        const auto skipped = left_out(
            {{"w", type, {2, 4}, repeated(1, 16)}, {"w_scale", dtype::f32, {2, 1}, "abcdefgh"}});
        REQUIRE(skipped.size() == 2);
        has(skipped[0].reason, "no layout has these dtypes");
    }
    // One shard of a model, the scales are in another.
    for (const auto& [name, scales] :
         {std::pair("w_blocks", "w_scales"), {"w_packed", "w_scale"}, {"l.qweight", "l.scales"}}) {
        const auto skipped = left_out({{name, dtype::u8, {1, 16}, repeated(1, 16)}});
        REQUIRE(skipped.size() == 1);
        has(skipped[0].reason, fmt::format("no file has {}", scales));
    }
}

TEST_CASE("packings that mx does not know are left out with their name", "[quantized]") {
    const scratch_dir dir;
    for (const io::unread_packing& u : io::unread_packings) {
        INFO(u.name);
        std::set<std::string> more{std::string(u.mark), std::string(u.scales),
                                   std::string(u.others.substr(0, u.others.find(' ')))};
        more.erase("");
        std::vector<stored> arrays{
            {"l" + std::string(u.codes), dtype::u16, {2, 4}, repeated(1, 16)},
            {"l.norm", dtype::f16, {2}, repeated(1, 4)}};
        for (const std::string& ending : more) {
            arrays.push_back({"l" + ending, dtype::f16, {2, 2}, repeated(1, 8)});
        }
        const engine::model m = model_of({write_model(dir / "m.safetensors", arrays)});
        std::vector<engine::skipped_tensor> skipped;
        const auto kept = engine::numeric_only(m.select({}), skipped);
        REQUIRE(kept.size() == 1);
        CHECK(kept[0].info().name == "l.norm");
        REQUIRE(skipped.size() == 1 + more.size());
        for (const engine::skipped_tensor& s : skipped) {
            const std::string ending = s.tensor.substr(1);
            INFO(s.tensor);
            if (ending == u.codes) {
                has(s.reason, "codes that are not decoded; ");
                has(s.reason, std::string(u.name) + ", which mx does not decode");
            } else {
                has(s.reason, ending == u.scales ? "scales of l" : "a part of l");
            }
        }
        // Numbers of the same names are numbers.
        const engine::model plain =
            model_of({write_model(dir / "p.safetensors",
                                  {{"l" + std::string(u.codes), dtype::f16, {8}, repeated(1, 16)},
                                   {"l" + std::string(u.mark), dtype::f64, {1}, repeated(1, 8)}})});
        skipped.clear();
        CHECK(engine::numeric_only(plain.select({}), skipped).size() == 2);
    }
}

TEST_CASE("GPTQ, AWQ, compressed-tensors, bitsandbytes and MLX", "[quantized]") {
    const engine::model m = model_of({fixture("layouts.safetensors")});
    const auto decoded = io::open_model(fixture("layouts_values.safetensors"));
    CHECK(m.select({}).size() == decoded->tensors().size());
    for (const io::tensor_info& t : decoded->tensors()) {
        INFO(t.name);
        const io::tensor_info* const got = info_in(m, t.name);
        REQUIRE(got != nullptr);
        CHECK(got->shape == t.shape);
        std::vector<float> read = values_in(m, t.name);
        std::vector<float> want = mx::test::values(*decoded, t.name);
        for (std::vector<float>* of : {&read, &want}) {
            for (float& x : *of) x += 0.0f;
        }
        CHECK(same(read, want));
    }
    has(remark_of(m, "gptq4_order.weight"), "groups of gptq4_order.g_idx");
    has(remark_of(m, "nf4_nested.weight"), "scaled by nf4_nested.weight.nested_absmax");
    CHECK(info_in(m, "gptq4.weight")->stored_bytes == 1024 + 32 + 128);
}

TEST_CASE("layouts that the libraries packed themselves", "[quantized]") {
    const auto decoded = io::open_model(fixture("library_layouts_values.safetensors"));
    std::size_t compared = 0;
    for (const char* file :
         {"library_layouts.safetensors", "gptq_v2/model.safetensors", "gptq_p/model.safetensors"}) {
        const engine::model m = model_of({fixture(file)});
        for (const engine::tensor_ref& t : m.select({})) {
            INFO(file << " " << t.info().name);
            CHECK(same(values_in(m, t.info().name), mx::test::values(*decoded, t.info().name)));
            ++compared;
        }
    }
    CHECK(compared == 8 + 16 + 10 + 2 + 8 + 4);
    CHECK(compared == decoded->tensors().size());
}

TEST_CASE("a configuration in the folder says how GPTQ stores zero points", "[quantized]") {
    const auto value_beside = [](const char* config, const std::string& text) {
        const scratch_dir dir;
        // Codes of 10, scales of 1, zero points stored as 7.
        const std::string path = write_model(
            dir / "m.safetensors", {{"w.qweight", dtype::i32, {4, 8}, repeated(0xaa, 128)},
                                    {"w.scales",
                                     dtype::f16,
                                     {1, 8},
                                     [] {
                                         std::string ones;
                                         for (int i = 0; i < 8; ++i) ones += little(0x3c00, 2);
                                         return ones;
                                     }()},
                                    {"w.qzeros", dtype::i32, {1, 1}, repeated(0x77, 4)}});
        if (!text.empty()) std::ofstream(dir / config) << text;
        const engine::model m = model_of({path});
        has(remark_of(m, "w.weight"), "checkpoint_format gptq");
        return values_in(m, "w.weight").at(5);
    };
    CHECK(value_beside("", "") == 2);
    CHECK(value_beside("quantize_config.json", R"({"checkpoint_format": "gptq"})") == 2);
    CHECK(value_beside("quantize_config.json", R"({"bits": 4, "checkpoint_format": "gptq_v2"})") ==
          3);
    CHECK(value_beside("config.json",
                       R"({"quantization_config": {"checkpoint_format": "gptq_v2"}})") == 3);
    CHECK(value_beside("config.json", R"({"text_config": {"quantization_config":
                       {"bits": 4, "checkpoint_format": "gptq_v2"}}})") == 3);
    CHECK(value_beside("config.json", R"({"text_config": {"quantization_config":
                       {"checkpoint_format": "gptq_v2"}},
                       "quantization_config": {"checkpoint_format": "gptq"}})") == 2);
    CHECK(value_beside("config.json", R"({"limits": [0.0, Infinity, -Infinity], "least": NaN,
                       "quantization_config": {"checkpoint_format": "gptq_v2"}})") == 3);
    // Elsewhere the word has no meaning, and text that is not JSON is ignored.
    CHECK(value_beside("config.json", R"({"checkpoint_format": "gptq_v2"})") == 2);
    CHECK(value_beside("config.json", R"({"a": {"checkpoint_format": "gptq_v2"}})") == 2);
    CHECK(value_beside("config.json", R"({"a": {"quantization_config":
                       {"checkpoint_format": "gptq_v2"}}})") == 2);
    CHECK(value_beside("config.json", R"({"text_config": {"checkpoint_format": "gptq_v2"}})") == 2);
    CHECK(value_beside("config.json", R"({"quantization_config": [[[[)") == 2);
    CHECK(value_beside("quantize_config.json", R"({"checkpoint_format": 2})") == 2);
}

TEST_CASE("a configuration that Python wrote may have numbers that JSON does not have",
          "[quantized]") {
    const scratch_dir dir;
    const std::string path = dir.file("config.json", R"({
        "time_step_limit": [0.0, Infinity], "least": -Infinity, "eps": NaN,
        "words": "NaN, \"Infinity\"", "\\": "Infinity",
        "text_config": {"width": 8, "quantization_config": {"bits": [4, Infinity]}, "depth": 2},
        "quantization_config": {"bits": 4}})");
    const io::config_entries entries = io::read_entries(path);
    CHECK(entries.at("time_step_limit.1") == "Infinity");
    CHECK(entries.at("least") == "-Infinity");
    CHECK(entries.at("eps") == "NaN");
    CHECK(entries.at("words") == R"(NaN, "Infinity")");
    CHECK(entries.at("\\") == "Infinity");
    CHECK(entries.at("text_config.quantization_config.bits.1") == "Infinity");
    const std::string text = io::config_quantized_by(path, R"({"bits": 8})");
    CHECK(text == R"({
  "time_step_limit": [
    0.0,
    Infinity
  ],
  "least": -Infinity,
  "eps": NaN,
  "words": "NaN, \"Infinity\"",
  "\\": "Infinity",
  "text_config": {
    "width": 8,
    "depth": 2
  },
  "quantization_config": {
    "bits": 8
  }
}
)");
    for (const char* bad : {R"({"a": Nan})", R"({"a": -NaN})", R"({"a": NaNs})", R"({NaN: 1})",
                            R"({"a": +Infinity})", R"({"a": "Infinity)"}) {
        INFO(bad);
        const std::string damaged = dir.file("damaged.json", bad);
        CHECK_THROWS_AS(io::read_entries(damaged), base::error);
    }
}

TEST_CASE("values of words do not depend on how they are read", "[quantized]") {
    const engine::model m = model_of({fixture("layouts.safetensors")});
    for (const engine::tensor_ref& t : m.select({})) {
        INFO(t.info().name);
        const auto source = t.file->open(t.index);
        std::string all(static_cast<std::size_t>(t.info().bytes), '\0');
        source->read(0, std::as_writable_bytes(std::span(all.data(), all.size())));
        for (std::size_t begin = 0; begin < all.size(); begin += 97) {
            for (const std::size_t size : {3, 40, 700}) {
                std::string part(std::min(size, all.size() - begin), '\0');
                source->read(begin, std::as_writable_bytes(std::span(part.data(), part.size())));
                REQUIRE(part == all.substr(begin, part.size()));
            }
        }
    }
}

TEST_CASE("GGUF's NVFP4 under one scale more", "[quantized][gguf]") {
    const engine::model m = model_of({fixture("gguf_blocks.gguf")});
    const auto decoded = io::open_model(fixture("gguf_blocks_values.safetensors"));
    for (const char* name : {"dense.weight", "experts.weight"}) {
        CHECK(same(values_in(m, name), mx::test::values(*decoded, name)));
        CHECK(info_in(m, name)->layout == "ggml-nvfp4");
    }
    CHECK(info_in(m, "dense.scale") == nullptr);
    CHECK(info_in(m, "dense.input_scale") == nullptr);
    has(remark_of(m, "experts.weight"),
        "(NVFP4 2x2x64) and experts.scale (F32 2): one scale more "
        "per matrix");
    CHECK(info_in(m, "NVFP4")->layout == "NVFP4");
}

TEST_CASE("false words and tables are refused in one line", "[quantized][hostile]") {
    const scratch_dir dir;
    const auto sound = io::open_model(fixture("layouts.safetensors"));
    // The arrays of one tensor, one of them replaced.
    const auto reason = [&](const std::string& stem, const stored& lie) {
        std::vector<stored> arrays;
        std::string codes;
        for (std::size_t i = 0; i < sound->tensors().size(); ++i) {
            const io::tensor_info& t = sound->tensors()[i];
            if (!t.name.starts_with(stem + ".")) continue;
            const bool replaced = t.name == lie.name;
            arrays.push_back(replaced ? lie : stored{t.name, t.type, t.shape, content(*sound, i)});
            for (const char* ending : {".qweight", ".weight_packed", ".weight"}) {
                if (t.name == stem + ending) codes = t.name;
            }
        }
        INFO(lie.name);
        const engine::model m = model_of({write_model(dir / "m.safetensors", arrays)});
        std::vector<engine::skipped_tensor> skipped;
        CHECK(engine::numeric_only(m.select({}), skipped).empty());
        CHECK(skipped.size() == arrays.size());
        return remark_of(m, codes);
    };
    const auto i64 = [](std::uint64_t a, std::uint64_t b) { return little(a, 8) + little(b, 8); };
    has(reason("gptq4", {"gptq4.qzeros", dtype::i32, {2, 3}, repeated(0, 24)}),
        "GPTQ of 32 outputs does not fill gptq4.qweight (I32 8x32) and gptq4.qzeros (I32 2x3)");
    has(reason("gptq4", {"gptq4.scales", dtype::f16, {3, 32}, repeated(0, 192)}), "does not fill");
    has(reason("gptq4_order", {"gptq4_order.g_idx", dtype::i32, {63}, repeated(0, 252)}),
        "GPTQ of 64 columns requires their groups in I32, at most 2^20, not gptq4_order.g_idx");
    has(reason("awq", {"awq.qzeros", dtype::i32, {2, 1}, repeated(0, 8)}), "AWQ of 16 outputs");
    for (const auto& [a, b] : {std::pair<std::uint64_t, std::uint64_t>{5, 7},
                               {~std::uint64_t{0}, 64},
                               {5, ~std::uint64_t{0}},
                               {1ull << 40, 1ull << 40}}) {
        has(reason("packed4", {"packed4.weight_shape", dtype::i64, {2}, i64(a, b)}),
            "do not fill these words");
    }
    has(reason("packed4_zeros",
               {"packed4_zeros.weight_zero_point", dtype::i32, {1, 2}, repeated(0, 8)}),
        "zero points of integers in words must be in I32 2x2, not packed4_zeros.weight_zero_point "
        "(I32 1x2)");
    has(reason("int8", {"int8.weight_zero_point", dtype::i8, {3}, "abc"}),
        "with int8.weight_zero_point (I8 3) is not read");
    has(reason("bnb8", {"bnb8.weight_format", dtype::u8, {}, "\2"}), "in another order of rows");
    const std::string state = "nf4.weight.quant_state.bitsandbytes__nf4";
    const auto state_of = [&](const std::string& json) {
        return reason("nf4", {state, dtype::u8, {json.size()}, json});
    };
    for (const char* json :
         {"", "[1]", "{", R"({"blocksize":64})", R"({"blocksize":0,"shape":[6,40]})",
          R"({"blocksize":64,"shape":[6,-40]})", R"({"blocksize":64,"shape":[0,40]})",
          R"({"blocksize":64,"shape":[4611686018427387904,40]})",
          R"({"blocksize":99999999999,"shape":[6,40]})"}) {
        INFO(json);
        has(state_of(json),
            "calls for extents and the size of a block as JSON in nf4.weight.quant");
    }
    has(state_of(std::string(5000, ' ')), "at most 4096 bytes");
    has(state_of(R"({"blocksize":64,"shape":[6,400]})"), "calls for 1200 bytes of codes");
    has(state_of(R"({"blocksize":8,"shape":[6,40]})"), "calls for 30 scales in F32");
    has(reason("nf4", {"nf4.weight.quant_map", dtype::f32, {15}, repeated(0, 60)}),
        "calls for nf4.weight.quant_map (F32 16)");
    has(reason("nf4_nested", {"nf4_nested.weight.nested_absmax", dtype::f32, {1}, repeated(0, 4)}),
        "with .nested_absmax and .nested_quant_map (F32) of their blocks");
}

TEST_CASE("groups that are not there are an error when they are read", "[quantized][hostile]") {
    const scratch_dir dir;
    const auto sound = io::open_model(fixture("layouts.safetensors"));
    std::vector<stored> arrays;
    for (std::size_t i = 0; i < sound->tensors().size(); ++i) {
        const io::tensor_info& t = sound->tensors()[i];
        if (!t.name.starts_with("gptq4_order.")) continue;
        std::string bytes = content(*sound, i);
        if (t.name == "gptq4_order.g_idx") bytes.replace(4, 4, little(~std::uint64_t{0}, 4));
        arrays.push_back({t.name, t.type, t.shape, bytes});
    }
    const engine::model m = model_of({write_model(dir / "m.safetensors", arrays)});
    const engine::tensor_ref t = m.select({}).front();
    has(error_of(base::error_kind::input, [&] { t.file->open(t.index); }),
        "gptq4_order.g_idx has -1, but there are 4 groups");
}

TEST_CASE("more groups than columns are left out", "[quantized][hostile]") {
    const scratch_dir dir;
    const std::string path = write_model(
        dir / "m.safetensors", {{"w.weight_packed", dtype::i32, {4, 1}, repeated(0, 16)},
                                {"w.weight_scale", dtype::f16, {4, 5}, repeated(0, 40)},
                                {"w.weight_shape", dtype::i64, {2}, little(4, 8) + little(4, 8)},
                                {"w.weight_g_idx", dtype::i32, {4}, repeated(0, 16)}});
    has(remark_of(model_of({path}), "w.weight_packed"), "4 columns do not divide into 5 groups");
}

TEST_CASE("names without the shapes or dtypes are not taken for a tensor", "[quantized][hostile]") {
    const scratch_dir dir;
    const auto refused = [&dir](const stored& codes, const stored& scales,
                                const std::vector<stored>& more = {}) {
        std::vector<stored> all{codes, scales};
        all.insert(all.end(), more.begin(), more.end());
        const engine::model m = model_of({write_model(dir / "m.safetensors", all)});
        CHECK(m.select({}).size() == all.size());
        for (const stored& a : all) CHECK(info_in(m, a.name) != nullptr);
        return remark_of(m, codes.name);
    };
    has(refused({"w_blocks", dtype::u8, {2, 16}, all_fp4 + all_fp4},
                {"w_scales", dtype::u8, {3}, "abc"}),
        "w_blocks (U8 2x16) and w_scales (U8 3) are not decoded as one tensor: MXFP4 calls for "
        "scales 2");
    has(refused({"w_blocks", dtype::u8, {2, 8}, all_fp4}, {"w_scales", dtype::u8, {2}, "ab"}),
        "keeps 16 bytes per block in the last axis");
    has(refused({"w", dtype::f8_e4m3, {2, 32}, repeated(1, 64)},
                {"w_scale", dtype::i32, {2, 1}, repeated(0, 8)}),
        "no layout has these dtypes");
    has(refused({"w", dtype::f8_e4m3, {2, 64}, repeated(1, 128)},
                {"w_scale", dtype::u8, {2, 3}, "abcdef"}),
        "MXFP8 calls for scales 2x2");
    has(refused({"w", dtype::f8_e4m3, {200, 64}, repeated(1, 12800)},
                {"w_scale_inv", dtype::f32, {3, 1}, repeated(0, 12)}),
        "FP8 in tiles calls for scales 2x1");
    has(refused({"w_packed", dtype::i32, {1, 4}, repeated(1, 16)},
                {"w_scale", dtype::bf16, {1, 1}, "ab"}),
        "integers in words require two axes and w_shape (I64 2)");
    const std::string shape = little(1, 8) + little(7, 8);
    has(refused({"w_packed", dtype::i32, {1, 4}, repeated(1, 16)},
                {"w_scale", dtype::bf16, {1, 1}, "ab"}, {{"w_shape", dtype::i64, {2}, shape}}),
        "integers in words of 2 to 8 bits without gaps, 1x7 by w_shape, do not fill these words");
    has(refused({"w_packed", dtype::i32, {1, 4}, repeated(1, 16)},
                {"w_scale", dtype::bf16, {1, 1}, "ab"},
                {{"w_shape", dtype::i64, {2}, little(1, 8) + little(32, 8)},
                 {"w_zero_point", dtype::i32, {1, 2}, repeated(1, 8)}}),
        "zero points of integers in words must be in I32 1x1, not w_zero_point (I32 1x2)");
    has(refused({"w", dtype::u8, {0, 16}, ""}, {"w_scale", dtype::u8, {0}, ""}), "no elements");
    has(refused({"w", dtype::u8, {1, 16}, all_fp4}, {"w_scale", dtype::f8_e4m3, {1, 2}, "ab"},
                {{"w_scale_2", dtype::f32, {2}, repeated(0, 8)}}),
        "w_scale_2 (F32 2) is not one F32");
    has(refused({"w", dtype::u8, {1, 16}, all_fp4}, {"w_scale", dtype::f8_e4m3, {1, 2}, "ab"},
                {{"w_scale_2", dtype::f32, {}, repeated(0, 4)},
                 {"w_global_scale", dtype::f32, {}, repeated(0, 4)}}),
        "second tensor scale");
    has(refused({"w", dtype::f8_e4m3, {1, 32}, repeated(1, 32)},
                {"w_scale", dtype::u8, {1, 1}, "a"},
                {{"w_scale_2", dtype::f32, {}, repeated(0, 4)}}),
        "has no place in this layout");
}

TEST_CASE("values that nothing scales", "[quantized]") {
    const scratch_dir dir;
    const engine::model m =
        model_of({write_model(dir / "m.safetensors", {{"w", dtype::f4, {4, 8}, all_fp4},
                                                      {"x_scale", dtype::f32, {}, "abcd"}})});
    CHECK(same(values_in(m, "w"), fp4_values(32, 1)));
    CHECK(info_in(m, "w")->layout.empty());
    CHECK(info_in(m, "x_scale") != nullptr);
}

TEST_CASE("scales in the 128x4 order", "[quantized]") {
    const scratch_dir dir;
    // 130 rows of 5 blocks: two tiles down, two across. The scale of row r, block k is
    // 2^((r + 7 k) % 50).
    const auto exponent = [](std::size_t r, std::size_t k) { return (r + 7 * k) % 50; };
    std::string scales(2 * 2 * 512, '\0');
    for (std::size_t r = 0; r < 130; ++r) {
        for (std::size_t k = 0; k < 5; ++k) {
            const std::size_t tile = r / 128 * 2 + k / 4;
            const std::size_t place = r % 128 % 32 * 16 + r % 128 / 32 * 4 + k % 4;
            scales[tile * 512 + place] = static_cast<char>(127 + exponent(r, k));
        }
    }
    const std::string path = write_model(
        dir / "m.safetensors", {{"w", dtype::f8_e4m3, {130, 160}, repeated(0x38, 130 * 160)},
                                {"w_scale", dtype::u8, {256, 8}, scales}});
    has(remark_of(model_of({path}), "w"), "(--swizzled)");
    engine::view_request swizzled;
    swizzled.swizzled = true;
    const engine::model m = model_of({path}, swizzled);
    std::vector<float> want;
    for (std::size_t r = 0; r < 130; ++r) {
        for (std::size_t c = 0; c < 160; ++c) {
            want.push_back(std::ldexp(1.0f, static_cast<int>(exponent(r, c / 32))));
        }
    }
    CHECK(same(values_in(m, "w"), want));
    has(remark_of(m, "w"), "scales in the 128x4 order");
    // Parts of a row, and rows across the border of tiles.
    const engine::tensor_ref t = m.select({}).front();
    const auto source = t.file->open(t.index);
    for (const std::size_t first : {0u, 33u, 150u, 127u * 160u + 70u, 129u * 160u + 130u}) {
        std::vector<float> part(std::min<std::size_t>(170, want.size() - first));
        source->read(first * 4, std::as_writable_bytes(std::span(part)));
        CHECK(std::equal(part.begin(), part.end(),
                         want.begin() + static_cast<std::ptrdiff_t>(first)));
    }
}

TEST_CASE("a stack of experts with swizzled scales", "[quantized]") {
    const scratch_dir dir;
    // Two matrices of 2 x 32: a tile each.
    std::string scales(2 * 512, '\0');
    scales[0] = 127;
    scales[16] = static_cast<char>(128);
    scales[512] = static_cast<char>(129);
    scales[512 + 16] = static_cast<char>(130);
    engine::view_request swizzled;
    swizzled.swizzled = true;
    const engine::model m = model_of(
        {write_model(dir / "m.safetensors", {{"w", dtype::f8_e4m3, {2, 2, 32}, repeated(0x38, 128)},
                                             {"w_scale", dtype::u8, {1024}, scales}})},
        swizzled);
    const std::vector<float> w = values_in(m, "w");
    CHECK(w[0] == 1);
    CHECK(w[32] == 2);
    CHECK(w[64] == 4);
    CHECK(w[127] == 8);
}

TEST_CASE("the list of layouts", "[quantized]") {
    for (const io::quantized_layout& l : io::quantized_layouts) {
        INFO(l.name);
        CHECK(!l.source.empty());
        // A whole column is a block of one column.
        CHECK((l.block_rows != io::whole_axis || l.block_cols == 1));
    }
}

TEST_CASE("the guide tells the same story as the lists", "[quantized]") {
    const std::string guide = slurp(std::string(MX_SOURCE_DIR) + "/docs/guide/quantized.md");
    for (const io::quantized_layout& l : io::quantized_layouts) {
        has(guide, "| `" + std::string(l.name) + "` |");
    }
    for (const io::quantized_naming& n : io::quantized_namings) {
        has(guide, "`NAME" + std::string(n.codes) + "`");
        has(guide, "`NAME" + std::string(n.scales) + "`");
    }
    for (const io::tensor_scale_name& t : io::tensor_scale_names) {
        has(guide, "`NAME" + std::string(t.ending) + "` (" + std::string(t.writer) + ")");
    }
    for (const mx::convert::weight_form& f : mx::convert::weight_forms) {
        has(guide, "`" + std::string(f.layout) + "`");
        has(guide, "`" + std::string(f.recipe) + "`");
        has(guide, "`" + std::string(f.config) + "`");
        has(guide, "| " + std::string(f.activations) + " |");
    }
    for (const std::string_view layout : mx::convert::engine_layouts()) {
        has(guide, "| `" + std::string(layout) + "` |");
    }
}
