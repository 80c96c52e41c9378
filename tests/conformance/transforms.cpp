// SPDX-License-Identifier: Apache-2.0
// Files written under a transform: packed files contain the bytes of the rotated tensor, and both
// ways of decoding rotate the values back.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/base/bits.hpp"
#include "libmx/io/readers.hpp"
#include "libmx/studies/convert/convert.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/block_inputs.hpp"
#include "tests/conformance/model_files.hpp"
#include "tests/memory_model.hpp"
#include "tests/naive_rotation.hpp"

namespace {

using bytes = std::vector<std::byte>;

struct example {
    const char* recipe;
    mx::tensor::shape shape;
    std::size_t batch, rows, cols;  // of the matrices to which the recipe applies
    bool down;                      // the rotated axis is that of the columns
};

// Wider or taller than a panel, with incomplete blocks at the ends.
const std::vector<example> examples{
    {"mxfp4:transform=hadamard", {3, 41, 333}, 1, 123, 333, false},
    {"mxfp6:transform=random-hadamard,transform_seed=8,transform_size=128",
     {2, 270001},
     1,
     2,
     270001,
     false},
    {"mxfp6:block=1x48,transform=hadamard,transform_size=128", {2, 300001}, 1, 2, 300001, false},
    {"nvfp4:transform=random-hadamard", {60, 999}, 1, 60, 999, false},
    {"mxfp8:block=32x1,transform=hadamard,transform_size=128", {2, 1130, 131}, 2, 1130, 131, true},
    {"mxint8:offset=fp16,block=16x16,transform=hadamard", {70, 90}, 1, 70, 90, false},
    {"mxfp4:axis=0,transform=random-hadamard", {7, 50, 3}, 1, 7, 150, true},
    {"mxfp4:axis=flat,transform=hadamard,transform_size=64", {31, 33}, 1, 1, 1023, false},
    {"fp8_128x128:transform=hadamard", {200, 300}, 1, 200, 300, false},
    {"mxfp4:scale=rceil,dialect=torchao,transform=hadamard", {9, 77}, 1, 9, 77, false},
};

std::vector<float> values(const mx::tensor::shape& shape) {
    const auto* const e2m1 = mx::format::find_element_format("e2m1");
    const std::uint64_t n = *mx::tensor::element_count(shape);
    std::vector<float> x;
    for (std::uint64_t seed = 0; x.size() < n; ++seed) {
        // Now and then a NaN or an Inf.
        const auto kind =
            seed % 50 == 49 ? mx::tests::block_kind::non_finite : mx::tests::block_kind::gaussian;
        const auto part = mx::tests::make_block(kind, *e2m1, 64, seed);
        x.insert(x.end(), part.begin(), part.end());
    }
    x.resize(n);
    return x;
}

bytes quantized(const example& e, const std::string& recipe, const std::vector<float>& x,
                const std::string& part) {
    mx::tests::memory_model model;
    model.add("w", mx::tensor::dtype::f32, e.shape, x);
    const mx::tests::temporary_file out(".transform.safetensors");
    const bool packed = part != "w";
    mx::engine::run_control control;
    control.threads = 3;
    mx::convert::quantize_model(model.all(), mx::codec::parse_recipe(recipe), packed, out.path(),
                                control);
    return mx::tests::bytes_of(*mx::io::open_model(out.path()), part);
}

bytes dequantized(const example& e, const std::vector<float>& x) {
    mx::tests::memory_model model;
    model.add("w", mx::tensor::dtype::f32, e.shape, x);
    const mx::tests::temporary_file packed(".packed.safetensors");
    mx::convert::quantize_model(model.all(), mx::codec::parse_recipe(e.recipe), true, packed.path(),
                                {});
    const mx::tests::temporary_file out(".values.safetensors");
    const auto file = mx::io::open_model(packed.path());
    CHECK(file->metadata().at("mx.recipe") ==
          mx::codec::to_string(mx::codec::parse_recipe(e.recipe)));
    mx::convert::dequantize_model(*file, out.path(), {});
    return mx::tests::bytes_of(*mx::io::open_model(out.path()), "w");
}

std::vector<float> floats(const bytes& b) {
    std::vector<float> x(b.size() / sizeof(float));
    std::memcpy(x.data(), b.data(), b.size());
    return x;
}

}  // namespace

TEST_CASE("packed files hold the bytes of the rotated tensor and values are rotated back") {
    for (const example& e : examples) {
        CAPTURE(e.recipe);
        mx::codec::recipe plain = mx::codec::parse_recipe(e.recipe);
        const mx::transform::rotation r = plain.rotate;
        plain.rotate = {};
        const std::string without = mx::codec::to_string(plain);
        const std::vector<float> x = values(e.shape);
        const std::vector<float> y =
            mx::tests::naive_rotation(r, x, e.batch, e.rows, e.cols, e.down);
        // In brackets: a failure should not print a million bytes.
        CHECK((quantized(e, e.recipe, x, "w.codes") == quantized(e, without, y, "w.codes")));
        CHECK((quantized(e, e.recipe, x, "w.scales") == quantized(e, without, y, "w.scales")));

        const bytes got = quantized(e, e.recipe, x, "w");
        CHECK((got == dequantized(e, x)));
        std::vector<float> want = floats(quantized(e, without, y, "w"));
        for (std::size_t b = 0; b < e.batch; ++b) {
            float* const first = want.data() + b * e.rows * e.cols;
            mx::transform::rotate_back(
                r, {first, e.rows, e.cols, e.cols},
                e.down ? mx::transform::run::column : mx::transform::run::row);
        }
        const std::vector<float> back = floats(got);
        std::uint64_t wrong = 0;
        for (std::size_t i = 0; i < want.size(); ++i) {
            wrong += mx::base::bits_of(back[i]) == mx::base::bits_of(want[i]) ? 0u : 1u;
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("the block table holds the scales of rotated blocks, for every factor") {
    const example& e = examples.front();
    const std::vector<float> x = values(e.shape);
    mx::tests::memory_model model;
    model.add("w", mx::tensor::dtype::f32, e.shape, x);
    const mx::tests::temporary_file table(".blocks.h5");
    mx::analysis::analysis_request request;
    request.recipes = {mx::codec::parse_recipe(e.recipe)};
    request.blocks_path = table.path();
    request.factors = {1.0f, 1.5f};
    mx::analysis::analyze(model.all(), request, {});
    for (std::size_t phase = 0; phase < 2; ++phase) {
        std::vector<float> scaled = x;
        for (float& v : scaled) v *= request.factors[phase];
        const std::string name =
            "w/" + std::string(e.recipe) + "/phase" + std::to_string(phase) + "/scale_code";
        const bytes codes = mx::tests::bytes_of(*mx::io::open_model(table.path()), name);
        CHECK((codes == quantized(e, e.recipe, scaled, "w.scales")));
    }
}
