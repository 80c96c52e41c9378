// SPDX-License-Identifier: Apache-2.0
// Files of kind `recorded`: dot products computed by a GPU, one per row: A and B are n x k codes, C
// and D n values. `model` in the metadata says how the accumulator enters.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "libmx/conformance/vectors/mma_model.hpp"
#include "libmx/conformance/verify/mma_file.hpp"
#include "libmx/conformance/verify/verify.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/terms.hpp"

namespace mx::conformance::verify {
namespace {

// How the recorded C enters, as written in the metadata.
struct recording_rule {
    std::string_view words;
    gemm::entry c;
    bool rounds_c;  // C is recorded as float32, but the instruction takes f16
};
constexpr std::array recording_rules{
    recording_rule{"fused-step", gemm::entry::term, false},
    recording_rule{"C rounded to f16 (RNE) first, then fused-step", gemm::entry::term, true},
    recording_rule{"fused-step with c = 0, then one float32 add of C (RNE)",
                   gemm::entry::afterwards, false},
    recording_rule{"fused-step, c ignored", gemm::entry::ignored, false},
    recording_rule{"C rounded to f16 (RNE), added after two f16 steps (k mod 4 below 2 first)",
                   gemm::entry::afterwards, true},
};

const recording_rule& rule_of(const vector_file& file) {
    const std::string& words = file.at("model");
    for (const recording_rule& r : recording_rules) {
        if (r.words == words) return r;
    }
    file.fail("its metadata says model={}, which this version does not know", words);
}

// n and k.
std::pair<std::size_t, std::size_t> shape_of(const vector_file& file) {
    const tensor::shape& a = file.info("A").shape;
    if (a.size() != 2 || a[0] == 0 || a[1] == 0) {
        file.fail_in("A", "is {}; rows x k is expected", tensor::to_string(a));
    }
    const tensor::shape& b = file.info("B").shape;
    if (!std::equal(a.begin(), a.end(), b.begin(), b.end())) {
        file.fail_in("B", "is {} where A is {}", tensor::to_string(b), tensor::to_string(a));
    }
    return {static_cast<std::size_t>(a[0]), static_cast<std::size_t>(a[1])};
}

}  // namespace

std::string verify_recorded(const vector_file& file, const verify_options& options,
                            comparison& found) {
    const recording_rule& rule = rule_of(file);
    vectors::mma_case what = mma_case_of(file);
    const std::string& out = file.at("out_format");
    what.f16 = out == "f16";
    if (out != "f16" && out != "f32") {
        file.fail("its metadata says out_format={}; f32 or f16 is expected", out);
    }
    if (rule.rounds_c != what.f16) {
        file.fail("its metadata says model={} of results in {}", rule.words, out);
    }
    if (what.scale != nullptr) file.fail("recordings have no scales");
    const gemm::accumulator model =
        options.accumulator ? *options.accumulator : mma_model_of(file, what, "conversion", rule.c);
    require_result(file, model, what.f16);
    const auto [rows, depth] = shape_of(file);
    const operand_stack a{vectors::empty_operand(what, what.a, 1, depth),
                          mma_codes(file, "A", *what.a)};
    const operand_stack b{vectors::empty_operand(what, what.b, 1, depth),
                          mma_codes(file, "B", *what.b)};
    std::vector<std::uint32_t> c = file.u32("C", rows);
    if (rule.rounds_c) std::ranges::transform(c, c.begin(), gemm::f16_from_f32);
    const auto d = file.words("D", what.f16 ? 16 : 32, rows);
    found.about("D", to_string(model));
    compare_tiles(a, b, c, d, model, found);
    return fmt::format("{}: {} x {}", to_string(model), what.a->name, what.b->name);
}

}  // namespace mx::conformance::verify
