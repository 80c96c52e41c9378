// SPDX-License-Identifier: Apache-2.0
// Files of kind `recorded`: dot products that a GPU computed, one per row: A and B are n x k codes,
// C and D n values. `model` in the metadata says how the accumulator took part.
#include <fmt/format.h>

#include <array>

#include "libmx/conformance/verify/kinds.hpp"
#include "libmx/conformance/verify/mma_file.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/multiply.hpp"
#include "libmx/gemm/terms.hpp"

namespace mx::conformance::verify {
namespace {

// How the recorded C enters, in the words of the metadata.
struct recording_rule {
    std::string_view words;
    gemm::entry c;
    bool rounds_c;  // C is recorded as float32 where the instruction takes f16
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
    file.fail(fmt::format("its metadata says model={}, which this version does not know", words));
}

gemm::operand row_of(const gemm::operand_format* format, const std::vector<std::uint32_t>& codes,
                     std::size_t row, std::size_t depth) {
    gemm::operand x;
    x.rows = 1;
    x.depth = depth;
    x.format = format;
    const auto begin = codes.begin() + static_cast<std::ptrdiff_t>(row * depth);
    x.codes.assign(begin, begin + static_cast<std::ptrdiff_t>(depth));
    return x;
}

// n and k.
std::pair<std::size_t, std::size_t> shape_of(const vector_file& file) {
    const tensor::shape& a = file.info("A").shape;
    if (a.size() != 2 || a[0] == 0 || a[1] == 0) {
        file.fail(fmt::format("is {}; rows x k is called for", tensor::to_string(a)), "A");
    }
    const tensor::shape& b = file.info("B").shape;
    if (!std::equal(a.begin(), a.end(), b.begin(), b.end())) {
        file.fail(fmt::format("is {} where A is {}", tensor::to_string(b), tensor::to_string(a)),
                  "B");
    }
    return {static_cast<std::size_t>(a[0]), static_cast<std::size_t>(a[1])};
}

}  // namespace

std::string verify_recorded(const vector_file& file, const verify_options& options,
                            comparison& found) {
    const recording_rule& rule = rule_of(file);
    mma_facts facts;
    facts.operands = mma_operands_of(file);
    const std::string& out = file.at("out_format");
    facts.f16_result = out == "f16";
    facts.conversion_key = "conversion";
    facts.c = rule.c;
    if (out != "f16" && out != "f32") {
        file.fail(fmt::format("its metadata says out_format={}; f32 or f16 is called for", out));
    }
    if (rule.rounds_c != facts.f16_result) {
        file.fail(fmt::format("its metadata says model={} of results in {}", rule.words, out));
    }
    if (facts.operands.scale != nullptr) file.fail("recordings have no scales");
    const gemm::accumulator model =
        options.accumulator ? *options.accumulator : mma_model_of(file, facts);
    require_result(file, model, facts.f16_result);
    const auto [rows, depth] = shape_of(file);
    const auto a = mma_codes(file, "A", *facts.operands.a);
    const auto b = mma_codes(file, "B", *facts.operands.b);
    const auto c = file.u32("C", rows);
    const auto d = accumulator_bits(file, "D", facts.f16_result, rows);

    gemm::arrangement how;
    how.accumulate_c = true;
    gemm::multiply_control control;
    control.threads = 1;
    found.about("D", to_string(model));
    for (std::size_t i = 0; i < rows; ++i) {
        const std::uint32_t start = rule.rounds_c ? gemm::f16_from_f32(c[i]) : c[i];
        const auto got =
            gemm::multiply(row_of(facts.operands.a, a, i, depth),
                           row_of(facts.operands.b, b, i, depth), {&start, 1}, model, how, control);
        found.check_bits({i, {}, {}, {}}, facts.f16_result ? 16 : 32, d[i], got[0]);
    }
    return fmt::format("{}: {} x {}", to_string(model), facts.operands.a->name,
                       facts.operands.b->name);
}

}  // namespace mx::conformance::verify
