// SPDX-License-Identifier: Apache-2.0
// Vector files that do not fit together are refused in one line that names the tensor.
#include <functional>
#include <string>

#include "libmx/base/status.hpp"
#include "libmx/conformance/verify/verify.hpp"
#include "tests/catch.hpp"
#include "tests/memory_model.hpp"

namespace {

using mx::base::error_kind;
using mx::tensor::dtype;
using mx::tests::memory_model;

memory_model blocks_file() {
    memory_model m;
    m.describe("kind", "blocks");
    m.describe("recipe", "mxfp4:block=1x4");
    return m;
}

void add_input(memory_model& m, const mx::tensor::shape& shape) {
    m.add("input", dtype::f32, shape,
          std::vector<float>(static_cast<std::size_t>(*mx::tensor::element_count(shape)), 1.0f));
}

void expect(const memory_model& m, error_kind kind, const std::string& tensor,
            const std::string& words) {
    try {
        mx::conformance::verify::verify_vectors(m, "file", {});
        FAIL("accepted; expected: " << words);
    } catch (const mx::base::error& e) {
        CAPTURE(e.what());
        CHECK(e.kind() == kind);
        CHECK(e.place().file == "file");
        CHECK(e.place().tensor == tensor);
        CHECK(e.message().find(words) != std::string::npos);
        CHECK(e.message().find('\n') == std::string::npos);
    }
}

}  // namespace

TEST_CASE("blocks files that do not fit are refused") {
    memory_model m = blocks_file();
    expect(m, error_kind::input, "input", "lacks this tensor");

    m = blocks_file();
    add_input(m, {8});
    expect(m, error_kind::input, "input", "blocks of 4");
    m = blocks_file();
    add_input(m, {2, 6});
    expect(m, error_kind::input, "input", "blocks of 4");
    m = blocks_file();
    add_input(m, {0, 4});
    expect(m, error_kind::input, "input", "blocks of 4");

    m = blocks_file();
    add_input(m, {2, 4});
    expect(m, error_kind::input, "", "none of the tensors");
    m.add("code", dtype::u8, {7}, std::vector<std::uint8_t>(7));
    expect(m, error_kind::input, "code", "7 values; the inputs require 8");

    m = blocks_file();
    add_input(m, {2, 4});
    m.add("dequant", dtype::u32, {8}, std::vector<std::uint32_t>(8));
    expect(m, error_kind::input, "dequant", "is U32");

    m = blocks_file();
    add_input(m, {2, 4});
    m.describe("contract", "code");
    expect(m, error_kind::input, "code", "lacks this tensor");
    m.describe("contract", "code zero_point");
    expect(m, error_kind::input, "", "'zero_point'");
    m.describe("contract", "");
    expect(m, error_kind::input, "", "none of the tensors");

    m.describe("recipe", "mxfp4:block=1x0");
    expect(m, error_kind::input, "", "recipe");
    m.describe("recipe", "fp8_1x128:block=1x4");
    m.describe("contract", "scale_code");
    m.add("scale_code", dtype::u8, {2}, std::vector<std::uint8_t>(2));
    expect(m, error_kind::input, "scale_code", "float32");

    m = blocks_file();
    add_input(m, {2, 4});
    m.add("code", dtype::u8, {8}, std::vector<std::uint8_t>(8));
    m.describe("skip", "some rows");
    expect(m, error_kind::input, "", "skips rows");
}

TEST_CASE("kinds that are unknown are told") {
    memory_model m;
    expect(m, error_kind::input, "", "no 'kind'");
    m.describe("kind", "block");
    expect(m, error_kind::input, "", "did you mean 'blocks'");
}

TEST_CASE("elements, scales and stochastic files that do not fit are refused") {
    memory_model m;
    m.describe("kind", "elements");
    expect(m, error_kind::input, "", "no 'element'");
    m.describe("element", "e9m9");
    expect(m, error_kind::input, "", "'e9m9'");
    m.describe("element", "e2m1");
    m.describe("primary_oracle", "nobody");
    expect(m, error_kind::input, "", "'nobody'");
    m.describe("primary_oracle", "cuda");
    expect(m, error_kind::input, "", "no value that could be compared");
    m.add("fp32.nobody.diff_index", dtype::u32, {1}, std::vector<std::uint32_t>{0});
    expect(m, error_kind::input, "fp32.nobody.diff_index", "'nobody'");

    m = memory_model();
    m.describe("kind", "elements");
    m.describe("element", "e2m1");
    m.describe("primary_oracle", "cuda");
    m.add("fp32.quark.diff_bits", dtype::u32, {1}, std::vector<std::uint32_t>{0});
    expect(m, error_kind::input, "fp32.quark.diff_bits", "diff_index");
    m.add("fp32.quark.diff_index", dtype::u32, {1}, std::vector<std::uint32_t>{0});
    expect(m, error_kind::input, "fp32.input", "lacks this tensor");

    m = memory_model();
    m.describe("kind", "scales");
    expect(m, error_kind::input, "amax", "lacks this tensor");
    m.add("amax", dtype::f32, {1}, std::vector<float>{-1.0f});
    expect(m, error_kind::input, "amax", "negative");
    m = memory_model();
    m.describe("kind", "scales");
    m.add("amax", dtype::f32, {1}, std::vector<float>{1.0f});
    expect(m, error_kind::input, "", "no value that could be compared");
    m.add("torchao.flor.e2m1", dtype::u8, {1}, std::vector<std::uint8_t>{0});
    expect(m, error_kind::input, "torchao.flor.e2m1", "did you mean 'floor'");

    m = memory_model();
    m.describe("kind", "stochastic");
    m.describe("element", "e2m1");
    m.add("input", dtype::f32, {2}, std::vector<float>{1.0f, 2.0f});
    m.add("rbits", dtype::u32, {1}, std::vector<std::uint32_t>{1});
    expect(m, error_kind::input, "rbits", "1 values; the inputs require 2");
}
