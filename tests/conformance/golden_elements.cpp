// SPDX-License-Identifier: Apache-2.0
// Element and scale conversions against other people's implementations, code for code.
#include <cmath>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "libmx/base/half.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/decode.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/vectors.hpp"

namespace {

using mx::base::bits_of;
using mx::format::rounding;
using mx::tests::vectors;

std::vector<float> inputs_of(const vectors& v, const std::string& set) {
    if (set == "fp32") return v.tensor.at("fp32.input");
    std::vector<float> x;
    for (std::uint32_t h = 0; h < 65536; ++h) {
        const auto bits = static_cast<std::uint16_t>(h);
        x.push_back(set == "bf16" ? mx::base::float_from_bf16(bits)
                                  : mx::base::float_from_half(bits));
    }
    return x;
}

struct tensor_meaning {
    rounding how;
    bool saturate;
    bool masked;  ///< compared only where fp32.finite_mask is 1
};

// The contents of a tensor of codes, by the last part of its name.
const std::map<std::string, tensor_meaning> meanings{
    {"code", {rounding::rtne, true, false}},
    {"code_nosat", {rounding::rtne, false, false}},
    {"code_ties_away", {rounding::away, true, true}},
    {"code_toward_zero", {rounding::zero, true, true}},
    {"code_toward_pos", {rounding::up, true, true}},
    {"code_toward_neg", {rounding::down, true, true}},
};

using encoder = std::function<std::uint32_t(std::uint32_t bits, const tensor_meaning&)>;
using decoder = std::function<double(std::uint32_t code)>;

// microxcaling, the only source of this tensor, turns -0 into +0; other sources keep the sign.
bool loses_sign_of_zero(const vectors& v, const std::string& tensor) {
    return v.metadata.at("element") == "e3m0" && tensor == "fp32.code_ties_away";
}

struct code_differences {
    std::uint64_t compared = 0;
    std::uint64_t skipped = 0;
    std::uint64_t differences = 0;
    std::string first;
};

code_differences compare(const vectors& v, const std::string& name, const encoder& encode,
                         const decoder& decode) {
    const std::string set = mx::tests::split(name, '.').front();
    const std::string last = mx::tests::split(name, '.').back();
    tensor_meaning meaning = meanings.at(last);
    if (name.find("rz_satfinite") != std::string::npos) meaning.how = rounding::zero;
    const bool finite_contract =
        v.metadata.at("contract").find("finite inputs only") != std::string::npos;
    const std::vector<float> x = inputs_of(v, set);
    const std::vector<std::uint8_t> expected = v.codes(name);
    const std::vector<std::uint8_t> mask =
        meaning.masked ? v.codes("fp32.finite_mask") : std::vector<std::uint8_t>{};
    code_differences t;
    REQUIRE(x.size() == expected.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        if ((finite_contract && !std::isfinite(x[i])) || (!mask.empty() && mask[i] == 0)) {
            ++t.skipped;
            continue;
        }
        if (x[i] == 0 && std::signbit(x[i]) && loses_sign_of_zero(v, name)) {
            ++t.skipped;
            continue;
        }
        const std::uint32_t code = encode(bits_of(x[i]), meaning);
        const bool both_nan = std::isnan(decode(code)) && std::isnan(decode(expected[i]));
        ++t.compared;
        if (code != expected[i] && !both_nan && t.differences++ == 0) {
            t.first = "bits " + std::to_string(bits_of(x[i])) + ": " + std::to_string(code) +
                      ", not " + std::to_string(expected[i]);
        }
    }
    return t;
}

void compare_file(const std::string& path) {
    const vectors v = mx::tests::read_vectors(path);
    const std::string name = v.metadata.at("element");
    encoder encode;
    decoder decode;
    if (name == "e8m0") {
        encode = [](std::uint32_t x, const tensor_meaning& m) {
            return mx::format::cast_e8m0(x, m.how == rounding::zero);
        };
        decode = [](std::uint32_t c) { return mx::format::decode_e8m0(static_cast<int>(c)); };
    } else {
        const auto* scale = mx::format::find_scale_format(name);
        const auto* element = mx::format::find_element_format(name);
        REQUIRE((element != nullptr || scale != nullptr));
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): REQUIRE has thrown
        const mx::format::element_format& f = element != nullptr ? *element : scale->number;
        const auto int_min = v.metadata.find("int_min");
        const bool full = int_min != v.metadata.end() && int_min->second == "full";
        const auto params = mx::format::params_of(f, full);
        encode = [params](std::uint32_t x, const tensor_meaning& m) {
            return mx::format::cast_code(params, {m.how, mx::format::tie_rule::up, 32}, x,
                                         m.saturate, 0);
        };
        decode = [f](std::uint32_t c) { return double{mx::format::decode(f, c)}; };
    }

    std::uint64_t tensors = 0;
    for (const auto& [tensor, values] : v.tensor) {
        CAPTURE(path, tensor);
        if (tensor == "fp32.input" || tensor == "fp32.finite_mask") continue;
        ++tensors;
        if (tensor == "decode_table") {
            for (std::size_t code = 0; code < values.size(); ++code) {
                const double ours = decode(static_cast<std::uint32_t>(code));
                CAPTURE(code, ours, values[code]);
                CHECK(((std::isnan(ours) && std::isnan(values[code])) ||
                       (ours == double{values[code]} &&
                        std::signbit(ours) == std::signbit(values[code]))));
            }
            continue;
        }
        const code_differences t = compare(v, tensor, encode, decode);
        CAPTURE(t.first, t.compared, t.skipped);
        CHECK(t.differences == 0);
        CHECK(t.compared > 10000);
        CHECK(t.skipped < 4096);  // the Infs and NaNs of a set
    }
    CHECK(tensors >= 4);
}

}  // namespace

TEST_CASE("conversions equal those of other implementations") {
    std::set<std::string> seen;
    for (const std::string& path : mx::tests::vector_files("elements")) {
        compare_file(path);
        seen.insert(mx::tests::stem(path));
    }
    CHECK(seen == std::set<std::string>{"e2m1", "e2m3", "e3m0", "e3m2", "e4m3", "e5m2", "e8m0",
                                        "int4", "int8", "ue4m3"});
}
