// SPDX-License-Identifier: Apache-2.0
// Reads back the files of `mx quantize --packed` and compares them with
// other implementations, which tests readers, packing and writers together.
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

#include "libmx/format/decode.hpp"
#include "libmx/studies/convert/convert.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/model_files.hpp"
#include "tests/conformance/vectors.hpp"
#include "tests/memory_model.hpp"

namespace {

using mx::format::rounding;
using mx::tests::vectors;

struct cast_case {
    std::string suffix;  ///< of the tensor of expected codes, behind "SET."
    rounding how;
    bool saturate;
};

const cast_case cast_cases[] = {
    {"code", rounding::rtne, true},
    {"code_nosat", rounding::rtne, false},
    {"code_ties_away", rounding::away, true},
    {"code_toward_zero", rounding::zero, true},
    {"cuda.rz_satfinite.code", rounding::zero, true},
};

const mx::format::element_format* number_of(const std::string& name) {
    if (const auto* f = mx::format::find_element_format(name)) return f;
    const auto* s = mx::format::find_scale_format(name);
    return s->is_number() ? &s->number : nullptr;
}

bool same_code(const mx::format::element_format* f, unsigned ours, unsigned theirs) {
    if (ours == theirs) return true;
    return f != nullptr && std::isnan(mx::format::decode(*f, ours)) &&
           std::isnan(mx::format::decode(*f, theirs));
}

// The three input sets of an elements file as tensors of their dtypes.
mx::tests::memory_model sets_of(const vectors& v) {
    std::vector<std::uint16_t> patterns(65536);
    std::iota(patterns.begin(), patterns.end(), std::uint16_t{0});
    mx::tests::memory_model model;
    model.add("bf16", mx::tensor::dtype::bf16, {256, 256}, patterns);
    model.add("fp16", mx::tensor::dtype::f16, {65536}, patterns);
    const std::vector<float>& input = v.tensor.at("fp32.input");
    model.add("fp32", mx::tensor::dtype::f32, {input.size()}, input);
    return model;
}

// Inputs that the vector's contract excludes (golden_elements.cpp explains why).
bool counts(const vectors& v, const std::string& set, const cast_case& c, std::size_t i) {
    const bool finite_only =
        v.metadata.at("contract").find("finite inputs only") != std::string::npos;
    const bool other_rounding = c.suffix == "code_ties_away" || c.suffix == "code_toward_zero";
    if (set == "fp32") {
        const float x = v.tensor.at("fp32.input")[i];
        if (other_rounding && v.tensor.at("fp32.finite_mask")[i] == 0) return false;
        if (other_rounding && v.metadata.at("element") == "e3m0" && x == 0) return false;
        return !finite_only || std::isfinite(x);
    }
    const std::size_t exponent_mask = set == "bf16" ? 0x7f80u : 0x7c00u;
    return !finite_only || (i & exponent_mask) != exponent_mask;
}

void cast_and_compare(const vectors& v, const cast_case& c) {
    const std::string element = v.metadata.at("element");
    const mx::tests::memory_model model = sets_of(v);
    const mx::tests::temporary_file out(".safetensors");
    mx::convert::cast_request request;
    request.element = element;
    request.round = c.how;
    request.saturate = c.saturate;
    request.packed = true;
    const auto int_min = v.metadata.find("int_min");
    if (int_min != v.metadata.end() && int_min->second == "full") {
        request.minimum = mx::codec::int_min::full;
    }
    mx::convert::cast(model.all(), request, out.path(), {});
    const auto written = mx::io::open_model(out.path());
    const mx::format::element_format* f = number_of(element);
    const int bits = f != nullptr ? f->bits() : 8;

    for (const std::string set : {"bf16", "fp16", "fp32"}) {
        const std::string name = std::string(set) + "." + c.suffix;
        if (!v.tensor.contains(name)) continue;
        CAPTURE(element, name);
        const std::vector<std::uint8_t> expected = v.codes(name);
        const auto bytes = mx::tests::bytes_of(*written, std::string(set) + ".codes");
        const auto codes = mx::tests::unpacked(bytes, bits, expected.size());
        std::uint64_t compared = 0;
        std::uint64_t differences = 0;
        for (std::size_t i = 0; i < codes.size(); ++i) {
            if (!counts(v, set, c, i)) continue;
            ++compared;
            differences += same_code(f, codes[i], expected[i]) ? 0 : 1;
        }
        CHECK(differences == 0);
        CHECK(compared + 4096 > expected.size());
    }
}

bool has_case(const vectors& v, const cast_case& c) {
    return v.tensor.contains("fp32." + c.suffix);
}

}  // namespace

TEST_CASE("files that cast writes hold the codes of other implementations") {
    int done = 0;
    for (const std::string& path : mx::tests::vector_files("elements")) {
        const vectors v = mx::tests::read_vectors(path);
        for (const cast_case& c : cast_cases) {
            if (!has_case(v, c)) continue;
            cast_and_compare(v, c);
            ++done;
        }
    }
    CHECK(done == 10 + 2 + 8 + 7 + 1);
}

TEST_CASE("files that quantize writes hold the codes and scales of other implementations") {
    int done = 0;
    for (const std::string& path : mx::tests::vector_files("blocks")) {
        const vectors v = mx::tests::read_vectors(path);
        CAPTURE(path);
        const std::vector<float>& input = v.tensor.at("input");
        const std::uint64_t n = v.last_axis.at("input");
        mx::tests::memory_model model;
        model.add("w", mx::tensor::dtype::f32, {input.size() / n, n}, input);
        const auto recipe = mx::codec::parse_recipe("mxfp8:element=" + v.metadata.at("element") +
                                                    ",scale=" + v.metadata.at("scale") +
                                                    ",block=" + v.metadata.at("block"));
        const mx::tests::temporary_file out(".safetensors");
        mx::convert::quantize_model(model.all(), recipe, true, out.path(), {});
        const auto packed = mx::io::open_model(out.path());
        const std::vector<std::uint8_t> scales = v.codes("scale_code");
        const std::vector<std::uint8_t> expected = v.codes("code");
        const auto scale_bytes = mx::tests::bytes_of(*packed, "w.scales");
        CHECK(mx::tests::unpacked(scale_bytes, 8, scales.size()) == scales);
        const auto codes = mx::tests::unpacked(mx::tests::bytes_of(*packed, "w.codes"),
                                               recipe.element->bits(), expected.size());
        std::uint64_t differences = 0;
        for (std::size_t i = 0; i < codes.size(); ++i) {
            // Codes under a NaN scale in formats without NaN: see golden_blocks.cpp.
            if (scales[i / n] == 255 && recipe.element->nan_code() < 0) continue;
            differences += same_code(recipe.element, codes[i], expected[i]) ? 0 : 1;
        }
        CHECK(differences == 0);

        // And the way back: the values that were dequantized elsewhere.
        const mx::tests::temporary_file values(".values.safetensors");
        mx::convert::dequantize_model(*packed, values.path(), {});
        const vectors back = mx::tests::read_vectors(values.path());
        const std::vector<float>& dequant = v.tensor.at("dequant");
        std::uint64_t wrong = 0;
        for (std::size_t i = 0; i < dequant.size(); ++i) {
            const float ours = back.tensor.at("w").at(i);
            const bool same = mx::base::bits_of(ours) == mx::base::bits_of(dequant[i]) ||
                              (std::isnan(ours) && std::isnan(dequant[i]));
            wrong += same ? 0 : 1;
        }
        CHECK(wrong == 0);
        ++done;
    }
    CHECK(done == 30);
}
