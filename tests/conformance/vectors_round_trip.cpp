// SPDX-License-Identifier: Apache-2.0
// The output of `mx vectors` verifies, for every preset, rule, rounding and dialect, and its bytes
// depend on the request only.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>

#include "libmx/base/bits.hpp"
#include "libmx/base/status.hpp"
#include "libmx/conformance/vectors/block_vectors.hpp"
#include "libmx/conformance/vectors/export_vectors.hpp"
#include "libmx/conformance/verify/verify.hpp"
#include "libmx/format/block_formats.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/model_files.hpp"
#include "tests/conformance/vectors.hpp"

namespace {

using namespace mx;

conformance::vectors::vector_request request_of(const codec::recipe& r, std::uint64_t blocks) {
    return {r, blocks, 7, "test"};
}

void write_and_verify(const codec::recipe& r, std::uint64_t blocks) {
    const tests::temporary_file out(".vectors.safetensors");
    const conformance::vectors::vector_request request = request_of(r, blocks);
    conformance::vectors::export_vectors(request, conformance::vectors::generated_source(request),
                                         out.path(), "");
    const auto file = io::open_model(out.path());
    const conformance::verify::verification v =
        conformance::verify::verify_vectors(*file, out.path(), {});
    CAPTURE(codec::to_string(r));
    CHECK(v.by == codec::to_string(r));
    CHECK(v.differences == 0);
    CHECK(v.compared >= 3 * blocks);
}

// The recipe, unless the dialect does not have one of its parts.
std::optional<codec::recipe> recipe_of(const std::string& text) {
    try {
        return codec::parse_recipe(text);
    } catch (const base::error&) {
        return std::nullopt;
    }
}

}  // namespace

TEST_CASE("vectors of every preset, rule, rounding and dialect verify") {
    std::set<std::string> done;
    std::set<std::string> dialects;
    for (const format::block_format& preset : format::block_formats) {
        for (const codec::dialect& by : codec::dialects()) {
            if (!by.blocks) continue;
            for (const scale::scale_rule& rule : scale::scale_rules) {
                for (const format::rounding_row& round : format::roundings) {
                    const auto r = recipe_of(
                        std::string(preset.name) + ":dialect=" + std::string(by.name) +
                        ",scale=" + std::string(rule.name) + ",round=" + std::string(round.name));
                    if (!r || !done.insert(codec::to_string(*r)).second) continue;
                    dialects.insert(std::string(by.name));
                    // Tiles of 128x128 are worth a thousand ordinary blocks.
                    const bool large = preset.block_rows > 1;
                    write_and_verify(*r, large ? 2 : conformance::vectors::input_category_count);
                }
            }
        }
    }
    CHECK(done.size() > 300);
    for (const codec::dialect& by : codec::dialects()) {
        CAPTURE(by.name);
        CHECK(dialects.contains(std::string(by.name)) == by.blocks);
    }
}

TEST_CASE("vectors of other recipe keys verify") {
    for (const char* text : {"mxint4:block=1x16,offset=fp16", "mxfp8:block=32x1", "mxfp4:block=4x4",
                             "mxfp4:round=stochastic,seed=5,random_bits=8", "mxint8:int_emax=1",
                             "mxfp4_e3m0:ties=even", "mxfp8:block=1x64,axis=flat"}) {
        write_and_verify(codec::parse_recipe(text), 36);
    }
}

TEST_CASE("vectors do not depend on threads") {
    for (const char* text : {"mxfp8:offset=fp16", "mxfp4:round=stochastic", "nvfp4:outer=row",
                             "nvfp4:four_over_six=mse", "mxfp4:dialect=systems-scaling"}) {
        CAPTURE(text);
        const codec::recipe r = codec::parse_recipe(text);
        const auto source = conformance::vectors::generated_source(request_of(r, 10000));
        const std::size_t row = conformance::vectors::row_blocks_of(r);
        const auto one = conformance::vectors::quantize_blocks(r, source.inputs.values, row, {}, 1);
        const auto three =
            conformance::vectors::quantize_blocks(r, source.inputs.values, row, {}, 3);
        CHECK(one.blocks() == 10000);
        CHECK(one == three);
    }
}

TEST_CASE("generated inputs are the same bytes everywhere") {
    const auto inputs = conformance::vectors::generate_inputs(codec::parse_recipe("mxfp4"), 240, 0);
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const float x : inputs.values) {
        const std::uint32_t bits = base::bits_of(x);
        for (int i = 0; i < 4; ++i) hash = (hash ^ (bits >> (8 * i) & 0xffu)) * 0x100000001b3u;
    }
    CHECK(hash == 0x25090d5e178925e6u);
}

TEST_CASE("generated inputs hold what their categories promise") {
    const codec::recipe r = codec::parse_recipe("mxfp6");
    const auto inputs = conformance::vectors::generate_inputs(r, 240, 3);
    std::vector<int> seen(conformance::vectors::input_category_count);
    bool subnormal = false, negative_zero = false, nan = false, inf = false, largest = false;
    for (std::size_t i = 0; i < inputs.values.size(); ++i) {
        const std::uint32_t bits = base::bits_of(inputs.values[i]);
        const std::uint32_t magnitude = bits & base::f32_magnitude_mask;
        subnormal = subnormal || (magnitude != 0 && magnitude < 0x00800000u);
        negative_zero = negative_zero || bits == 0x80000000u;
        nan = nan || magnitude > base::f32_infinity;
        inf = inf || magnitude == base::f32_infinity;
        largest = largest || magnitude == 0x7f7fffffu;
        if (inputs.is_bf16[i / 32] != 0) CHECK((bits & 0xffffu) == 0);
    }
    for (const std::uint8_t c : inputs.category) ++seen[c];
    for (const int n : seen) CHECK(n == 20);
    CHECK((subnormal && negative_zero && nan && inf && largest));
}

TEST_CASE("text for $readmemh names what it holds") {
    conformance::vectors::vector_array a{"code", "codes", tensor::dtype::u8, 6,
                                         3,      true,    "element codes",   {}};
    a.words = {0, 0x3f, 5, 0x20, 1, 2};
    CHECK(conformance::vectors::hex_text(a, {"mxfp6", "mx 1", "two blocks"}) ==
          "// codes: element codes of recipe mxfp6\n"
          "// written by mx 1; inputs: two blocks\n"
          "// layout: one block per line, 3 words each, first element first\n"
          "// $readmemh: reg [5:0] codes [0:5], 6 words of 6 bits\n"
          "00 3f 05\n"
          "20 01 02\n");
}

TEST_CASE("text files hold the words of the safetensors file") {
    const auto r = codec::parse_recipe("nvfp4:dialect=te");
    const tests::temporary_file out(".hex.safetensors");
    const tests::temporary_file folder(".hex");
    const conformance::vectors::vector_request request = request_of(r, 12);
    const auto done = conformance::vectors::export_vectors(
        request, conformance::vectors::generated_source(request), out.path(), folder.path());
    CHECK(done.texts == conformance::vectors::hex_files(r, folder.path()));
    CHECK(done.texts.size() == 5);
    const auto vectors = tests::read_vectors(out.path());
    CHECK(vectors.tensor.contains("global_encode_scale"));
    std::ifstream in(folder.path() + "/codes.hex");
    std::vector<std::uint8_t> codes;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("//")) continue;
        for (const std::string& word : tests::split(line, ' ')) {
            codes.push_back(static_cast<std::uint8_t>(std::stoul(word, nullptr, 16)));
        }
    }
    CHECK(codes == vectors.codes("code"));
    for (const std::string& path : done.texts) std::filesystem::remove(path);
}
