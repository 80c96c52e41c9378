// SPDX-License-Identifier: Apache-2.0
// Scales and codes of UE4M3 and UE5M3 blocks from other implementations, as input of the search for
// the origin of bytes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/block/scale_swizzle.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/studies/rosetta/rosetta.hpp"
#include "libmx/studies/rosetta/scale_origin.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/model_files.hpp"
#include "tests/conformance/vectors.hpp"
#include "tests/memory_model.hpp"

using namespace mx;

namespace {

// Blocks as stored in a file, with the values that they were made from.
struct blocks {
    std::size_t size = 16;
    std::vector<float> input;
    std::vector<std::uint8_t> scales, codes;

    tests::memory_model file() const {
        tests::memory_model m;
        const std::size_t n = scales.size();
        std::vector<std::uint8_t> bytes;
        for (std::size_t i = 0; i < codes.size(); i += 2) {
            bytes.push_back(static_cast<std::uint8_t>(codes[i] | codes[i + 1] << 4));
        }
        m.add("codes", tensor::dtype::u8, {n, size / 2}, bytes);
        m.add("scales", tensor::dtype::u8, {n, 1}, scales);
        return m;
    }
};

// The blocks of a vector file; `finite`: without those that contain NaN or Inf.
blocks read_blocks(const std::string& path, bool finite) {
    const tests::vectors v = tests::read_vectors(path);
    const std::vector<float>& x = v.tensor.at("input");
    const std::vector<std::uint8_t> scales = v.codes("scale_code"), codes = v.codes("code");
    blocks b;
    b.size = v.last_axis.at("input");
    for (std::size_t i = 0; i < scales.size(); ++i) {
        const auto from = static_cast<std::ptrdiff_t>(i * b.size);
        const auto to = from + static_cast<std::ptrdiff_t>(b.size);
        const bool plain =
            std::all_of(x.begin() + from, x.begin() + to, [](float f) { return std::isfinite(f); });
        if (finite && !plain) continue;
        b.input.insert(b.input.end(), x.begin() + from, x.begin() + to);
        b.codes.insert(b.codes.end(), codes.begin() + from, codes.begin() + to);
        b.scales.push_back(scales[i]);
    }
    for (std::uint8_t& c : b.codes) c &= 15;  // Quark stores NaN and Inf next to the codes
    return b;
}

rosetta::origin_result judge(const blocks& b, const std::string& scale_format,
                             const std::string& original = {}) {
    const tests::memory_model file = b.file();
    const auto coded =
        rosetta::find_coded_tensors(file, {"e2m1", "codes", "scales", scale_format, ""});
    if (original.empty()) return rosetta::find_origins(coded, nullptr, {}).at(0);
    const engine::model from({original}, {});
    return rosetta::find_origins(coded, &from, {}).at(0);
}

const rosetta::origin_row& row_of(const rosetta::origin_result& r, const std::string& recipe) {
    const codec::recipe wanted = codec::parse_recipe(recipe);
    for (const rosetta::origin_row& row : r.rows) {
        if (row.recipe == wanted) return row;
    }
    throw std::out_of_range(recipe);
}

struct case_of {
    std::string file, recipe;
    std::string excluded;  ///< a recipe that the blocks exclude
};

const std::vector<case_of> origin_cases{
    {"nvfp4/torchao_nvfp4_two-level_16", "nvfp4:dialect=torchao", "nvfp4"},
    {"nvfp4/torchao_nvfp4_single-level_16", "nvfp4:scale=single-level,dialect=torchao",
     "nvfp4:scale=single-level"},
    {"nvfp4/te_nvfp4_two-level_16", "nvfp4:dialect=te", "nvfp4:dialect=torchao"},
    {"nvfp4/ggml_nvfp4_ue4m3_16", "nvfp4:dialect=ggml", "nvfp4:scale=single-level"},
    {"dialects/torchao-0.18.0_nvfp4_two-level_16", "nvfp4:dialect=torchao@0.18",
     "nvfp4:dialect=te"},
    {"dialects/torchao-0.18.0_nvfp4_single-level_16",
     "nvfp4:scale=single-level,dialect=torchao@0.18", "nvfp4:dialect=ggml"},
    {"dialects/torchao-0.15.0_nvfp4_two-level_16", "nvfp4:dialect=torchao@0.15",
     "nvfp4:dialect=te"},
    {"dialects/torchao-0.15.0_nvfp4_single-level_16",
     "nvfp4:scale=single-level,dialect=torchao@0.15", "nvfp4:dialect=ggml"},
    {"dialects/te_nvfp4_four-over-six-mae-448-fp16_16",
     "nvfp4:four_over_six=mae,bound=448,candidates=fp16,dialect=te", "nvfp4:dialect=te"},
    {"dialects/te_nvfp4_four-over-six-mse-256-exact_16", "nvfp4:four_over_six=mse,dialect=te",
     "nvfp4:four_over_six=mse"},
    {"dialects/quark_amdfp4_ue5m3_16", "amdfp4:dialect=quark", "amdfp4:dialect=alto"},
    {"dialects/quark_amdfp4_ue5m3_32", "amdfp4:block=1x32,dialect=quark",
     "amdfp4:block=1x32,dialect=alto"},
    {"dialects/alto_amdfp4_ue5m3-single-level_16", "amdfp4:scale=single-level,dialect=alto",
     "amdfp4:dialect=quark"},
    {"dialects/alto_amdfp4_ue5m3-two-level_16", "nvfp4:scale_format=ue5m3,dialect=alto",
     "nvfp4:scale_format=ue5m3"},
    {"dialects/te_nvfp4-ue5m3_two-level_16", "nvfp4:scale_format=ue5m3,dialect=te",
     "nvfp4:scale_format=ue5m3,dialect=alto"}};

std::string path_of(const case_of& c) {
    return std::string(MX_SOURCE_DIR) + "/datasets/vectors/" + c.file + ".safetensors";
}

std::string scale_format_of(const case_of& c) {
    return c.file.find("ue5m3") != std::string::npos ? "ue5m3" : "ue4m3";
}

void write_original(const std::string& path, const std::vector<float>& x, std::size_t cols) {
    const auto out =
        io::create_safetensors(path, {{"w", tensor::dtype::f32, {x.size() / cols, cols}}}, {});
    out->write(0, 0, std::as_bytes(std::span(x)));
    out->commit();
}

}  // namespace

TEST_CASE("no block of an implementation excludes the recipe that reproduces it") {
    for (const case_of& c : origin_cases) {
        CAPTURE(c.file);
        // Blocks with NaN and Inf, too.
        const rosetta::origin_result r = judge(read_blocks(path_of(c), false), scale_format_of(c));
        CHECK(r.blocks >= 157);
        CHECK(row_of(r, c.recipe).excluded == 0);
        CHECK(row_of(r, c.excluded).excluded > 0);
    }
}

TEST_CASE("beside the original, an implementation's scales are those of its recipe") {
    for (const case_of& c : origin_cases) {
        CAPTURE(c.file);
        const blocks b = read_blocks(path_of(c), true);
        const tests::temporary_file original(".safetensors");
        write_original(original.path(), b.input, b.size);
        const rosetta::origin_result r = judge(b, scale_format_of(c), original.path());
        const rosetta::origin_row& own = row_of(r, c.recipe);
        CHECK(own.scales_differ == 0);
        // TE's reference quantizer writes -0 as 0 (docs/limitations.md).
        const bool reference = c.file.find("four-over-six") != std::string::npos;
        if (!reference) CHECK(own.codes_differ == 0);
        const rosetta::origin_row& other = row_of(r, c.excluded);
        CHECK(other.scales_differ + other.codes_differ > 0);
    }
}

TEST_CASE("every recipe of number scales leaves blocks that do not exclude it") {
    std::mt19937 random(11);
    std::student_t_distribution<float> heavy(1.5F);
    std::vector<float> x(512 * 16);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i / 16 % 50 == 0 ? 0.0F : heavy(random);
    float amax = 0;
    for (const float v : x) amax = std::max(amax, std::abs(v));
    for (const std::string format : {"ue4m3", "ue5m3"}) {
        for (const codec::recipe& r : rosetta::recipes_of_element("e2m1", "1x16", format)) {
            if (scale::is_search(r.rule->id)) continue;
            // Outer scales of odd mantissas: amax / 2688 and its reciprocal are rounded.
            const codec::block_params p = codec::params_of(r, {base::bits_of(amax)});
            blocks b;
            b.input = x;
            b.codes.resize(x.size());
            for (std::size_t at = 0; at < x.size(); at += 16) {
                b.scales.push_back(codec::quantize_block(p, std::span(x).subspan(at, 16), {},
                                                         std::span(b.codes).subspan(at, 16))
                                       .scale_code);
            }
            CAPTURE(codec::to_string(r));
            const rosetta::origin_result found = judge(b, format);
            const rosetta::origin_row& own = row_of(found, codec::to_string(r));
            CHECK(own.excluded == 0);
            CHECK(rosetta::evidence_against(own.tops) == nullptr);
        }
    }
}

TEST_CASE("blocks that no UE4M3 rule leaves are excluded by every one") {
    blocks b;
    b.codes.assign(4 * 16, 0);
    // A largest element of 3 under a normal scale, as from a rule that rounds up to powers of two;
    // a sign bit; a largest element of 6 under scale 0; and one block that all rules can produce.
    b.scales = {0x40, 0xb8, 0x40, 0x38};
    for (std::size_t i = 0; i < 16; ++i) b.codes[i] = 0x5;
    for (std::size_t i = 16; i < 32; ++i) b.codes[i] = 0x7;
    for (std::size_t i = 32; i < 48; ++i) b.codes[i] = 0x1;
    for (std::size_t i = 48; i < 64; ++i) b.codes[i] = 0xf;
    const rosetta::origin_result r = judge(b, "ue4m3");
    CHECK(r.rows.size() > 20);
    for (const rosetta::origin_row& row : r.rows) {
        CAPTURE(codec::to_string(row.recipe));
        CHECK(row.excluded == 3);
        CHECK(row.first_excluded == 0);
    }
    CHECK(r.largest_scale == 0xb8);
}

TEST_CASE("the same bytes are judged by the scale format that is named") {
    // 6 under 0x38: 1 in UE4M3, 2^-8 in UE5M3, 2^-71 in E8M0; 5 largest under code 3.
    blocks b;
    b.scales = {0x38, 0x03};
    b.codes.assign(32, 0x7);
    for (std::size_t i = 16; i < 32; ++i) b.codes[i] = 0x6;
    CHECK(row_of(judge(b, "ue5m3"), "amdfp4").excluded == 0);
    CHECK(row_of(judge(b, "ue4m3"), "nvfp4:dialect=torchao").excluded == 1);  // below 2^-6
    CHECK(row_of(judge(b, "e8m0"), "mxfp4:block=1x16,scale=ceil").excluded == 1);
    CHECK_THROWS_AS(judge(b, "f32"), base::error);
    CHECK_THROWS_AS(judge(b, "ue9m9"), base::error);
}

TEST_CASE("a tensor scale that is not the recipe's own is taken from the file") {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    std::vector<float> x(64 * 64);
    for (float& v : x) v = normal(random);
    const tests::temporary_file original(".safetensors");
    write_original(original.path(), x, 64);
    // As in a tensor that shares its scale with a larger one.
    codec::block_params p = codec::params_of(codec::parse_recipe("nvfp4:dialect=modelopt"));
    codec::set_tensor_scale(p, 0.0123F);
    blocks b;
    b.codes.resize(x.size());
    for (std::size_t at = 0; at < x.size(); at += 16) {
        b.scales.push_back(codec::quantize_block(p, std::span(x).subspan(at, 16), {},
                                                 std::span(b.codes).subspan(at, 16))
                               .scale_code);
    }
    tests::memory_model file = b.file();
    file.add("scales_2", tensor::dtype::f32, {1}, std::vector<float>{0.0123F});
    file.add("w_global_scale", tensor::dtype::f32, {1}, std::vector<float>{1 / 0.0123F});
    file.add("two", tensor::dtype::f32, {2}, std::vector<float>{1, 1});
    file.add("nan", tensor::dtype::f32, {1}, std::vector<float>{std::nanf("")});
    const auto coded = [&](const std::string& tensor_scale) {
        return rosetta::find_coded_tensors(file,
                                           {"e2m1", "codes", "scales", "ue4m3", tensor_scale});
    };
    const engine::model from({original.path()}, {});
    for (const std::string name : {"scales_2", "w_global_scale"}) {
        const auto r = rosetta::find_origins(coded(name), &from, {}).at(0);
        CAPTURE(name);
        for (const rosetta::origin_row& row : r.rows) {
            // With a tensor scale, only two-level rules remain.
            CHECK(row.recipe.rule->id == scale::rule_id::two_level);
            CHECK(row.tensor_scale_differs);
        }
        CHECK(row_of(r, "nvfp4:dialect=modelopt").scales_differ == 0);
        CHECK(row_of(r, "nvfp4").scales_differ == 0);
        CHECK(row_of(r, "nvfp4:four_over_six=mse").scales_differ > 0);
    }
    // Without it, the recipe's own tensor scale is used, and all scales differ.
    const auto own = rosetta::find_origins(coded(""), &from, {}).at(0);
    CHECK(row_of(own, "nvfp4:dialect=modelopt").scales_differ > 200);
    CHECK_FALSE(row_of(own, "nvfp4:dialect=modelopt").tensor_scale_differs);
    for (const std::string name : {"two", "nan", "codes", "nope"}) {
        CAPTURE(name);
        CHECK_THROWS_AS(coded(name), base::error);
    }
}

TEST_CASE("scales in the 128x4 order are found and named") {
    constexpr std::size_t rows = 128, cols = 256, across = cols / 32;
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<float> x(rows * cols);
    for (float& v : x) v = normal(random) * std::exp(normal(random));
    const tests::temporary_file original(".safetensors");
    write_original(original.path(), x, cols);
    const codec::block_params p = codec::params_of(codec::parse_recipe("mxfp8:scale=rceil"));
    std::vector<std::uint8_t> codes(x.size());
    std::vector<std::byte> scales, tiles(block::swizzled_bytes(rows, across));
    for (std::size_t at = 0; at < x.size(); at += 32) {
        const auto b = codec::quantize_block(p, std::span(x).subspan(at, 32), {},
                                             std::span(codes).subspan(at, 32));
        scales.push_back(static_cast<std::byte>(b.scale_code));
    }
    block::swizzle(scales, rows, across, tiles);
    std::vector<std::uint8_t> stored;
    for (const std::byte b : tiles) stored.push_back(std::to_integer<std::uint8_t>(b));
    tests::memory_model file;
    file.add("w.weight", tensor::dtype::f8_e4m3, {rows, cols}, codes);
    file.add("w.weight_scale", tensor::dtype::f8_e8m0, {rows, across}, stored);
    file.add("r.weight", tensor::dtype::f8_e4m3, {rows, cols}, codes);
    file.add("r.weight_scale", tensor::dtype::f32, {1}, std::vector<float>{0.5F});
    const engine::model from({original.path()}, {});
    rosetta::coded_request how;
    const auto plain = rosetta::find_coded_tensors(file, how);
    REQUIRE(plain.size() == 1);  // the other tensor's scale is a number
    CHECK(plain.front().fits_swizzled);
    const auto read = rosetta::find_origins(plain, &from, {}).at(0);
    CHECK(row_of(read, "mxfp8:scale=rceil").scales_differ > 100);
    how.swizzled = true;
    const auto tiled = rosetta::find_coded_tensors(file, how);
    REQUIRE(tiled.size() == 1);
    CHECK_FALSE(tiled.front().fits_swizzled);
    const auto right = rosetta::find_origins(tiled, &from, {}).at(0);
    CHECK(row_of(right, "mxfp8:scale=rceil").scales_differ == 0);
    CHECK(row_of(right, "mxfp8:scale=rceil").codes_differ == 0);
}

TEST_CASE("plain scales make four-over-six unlikely, and its own do not") {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::vector<float> x(1024 * 16);
    for (float& v : x) v = normal(random);
    for (const char* made : {"nvfp4", "nvfp4:four_over_six=mae"}) {
        const codec::block_params p =
            codec::params_of(codec::parse_recipe(made), {base::bits_of(5.0F)});
        blocks b;
        b.codes.resize(x.size());
        for (std::size_t at = 0; at < x.size(); at += 16) {
            b.scales.push_back(codec::quantize_block(p, std::span(x).subspan(at, 16), {},
                                                     std::span(b.codes).subspan(at, 16))
                                   .scale_code);
        }
        const rosetta::origin_result r = judge(b, "ue4m3");
        const rosetta::origin_row& selects = row_of(r, "nvfp4:four_over_six=mae");
        CAPTURE(made);
        CHECK(selects.excluded == 0);
        const bool plain = std::string(made) == "nvfp4";
        CHECK((rosetta::evidence_against(selects.tops) != nullptr) == plain);
        CHECK((row_of(r, "nvfp4").excluded == 0) == plain);
    }
}
