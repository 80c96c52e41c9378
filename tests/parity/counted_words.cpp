// SPDX-License-Identifier: Apache-2.0
// Totals from counts of words against those of the reference, block by block.
#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/simd/words.hpp"
#include "libmx/engine/counted_totals.hpp"
#include "libmx/engine/tensor_counts.hpp"
#include "tests/catch.hpp"
#include "tests/parity/counted_cases.hpp"
#include "tests/parity/segments.hpp"

namespace {

using mx::base::simd::target;
using mx::block::segment_stats;
using mx::codec::recipe;
using mx::codec::word_counts;
using mx::tensor::dtype;
using namespace mx::tests;

// The valid combinations of presets, dialects, rules and other settings.
std::vector<recipe> recipes_of(const std::vector<std::string>& presets,
                               const std::vector<std::string>& more) {
    std::vector<recipe> out;
    for (const std::string& preset : presets) {
        for (const auto& by : mx::codec::dialects()) {
            for (const auto& rule : mx::scale::scale_rules) {
                for (const std::string& keys : more) {
                    try {
                        recipe r =
                            mx::codec::parse_recipe(preset + ":dialect=" + std::string(by.name) +
                                                    ",scale=" + std::string(rule.name) + keys);
                        if (std::ranges::count(out, r) == 0) out.push_back(std::move(r));
                    } catch (const mx::base::error&) {  // not a valid recipe
                    }
                }
            }
        }
    }
    return out;
}

const std::vector<std::string> elements_and_roundings{"",
                                                      ",round=away",
                                                      ",round=zero",
                                                      ",round=nearest-ties-to-zero",
                                                      ",element=e5m2",
                                                      ",element=e2m3",
                                                      ",element=e3m2",
                                                      ",element=e3m0",
                                                      ",element=e3m0,ties=even",
                                                      ",element=e1m2",
                                                      ",element=int8",
                                                      ",element=int8,int_min=symmetric",
                                                      ",element=int4,round=away",
                                                      ",element=e4m3"};

// In `cuts` parts, each counted separately.
std::vector<segment_stats> by_counting(const laid_out& job, dtype type, std::size_t cuts,
                                       mx::codec::word_pass pass) {
    std::vector<std::unique_ptr<word_counts>> parts;
    std::vector<const word_counts*> all;
    std::mt19937 random(5);
    for (std::size_t i = 0; i < cuts; ++i) {
        parts.push_back(std::make_unique<word_counts>(type, job.asked, pass));
        all.push_back(parts.back().get());
    }
    for (const auto& s : job.segments) {
        parts[random() % cuts]->add(job.values, std::span(&s, 1), nullptr);
    }
    return mx::engine::counted_totals(all);
}

std::vector<mx::codec::word_pass> passes_here() {
    std::vector<mx::codec::word_pass> out{mx::codec::count_words};
    for (const target t : {target::sse4, target::avx2, target::avx512, target::neon}) {
        if (mx::base::simd::supported(t)) out.push_back(mx::codec::simd::word_passes_for(t).one);
    }
    return out;
}

std::size_t compare(const stored_matrix& m, const std::vector<recipe>& recipes, std::size_t cuts,
                    mx::codec::word_pass pass) {
    const laid_out job = lay_out(m, recipes);
    if (job.asked.empty()) return 0;
    const auto expected = by_reference(job);
    const auto got = by_counting(job, m.type, cuts, pass);
    std::size_t at = 0;
    for (const recipe& r : recipes) {
        if (!mx::codec::counts_words(mx::codec::params_of(r, facts_of(m)), m.type)) continue;
        INFO(mx::codec::to_string(r));
        CHECK(difference(got[at], expected[at]) == "");
        ++at;
    }
    return at;
}

// Recipes of one block shape together.
std::size_t compare_all(const stored_matrix& m, std::vector<recipe> recipes, std::size_t cuts,
                        mx::codec::word_pass pass) {
    std::size_t count = 0;
    while (!recipes.empty()) {
        const auto block = recipes.front().block;
        const auto rest = std::stable_partition(recipes.begin(), recipes.end(),
                                                [&](const recipe& r) { return r.block == block; });
        count += compare(m, {recipes.begin(), rest}, cuts, pass);
        recipes.erase(recipes.begin(), rest);
    }
    return count;
}

}  // namespace

TEST_CASE("counts: totals of every recipe are those of the reference", "[parity]") {
    const auto pass = passes_here().back();
    const std::vector<recipe> recipes =
        recipes_of({"mxfp4", "mxfp8", "nvfp4", "amdfp4", "fp8_1x128"}, elements_and_roundings);
    std::size_t count = 0;
    for (const dtype type : {dtype::bf16, dtype::f16}) {
        for (const block_kind kind : every_kind) {
            INFO(name_of(kind));
            const auto& aimed_at = *mx::format::find_element_format("e2m1");
            count += compare_all(make_matrix(type, 4, 333, {kind}, aimed_at, 3), recipes, 2, pass);
        }
        count += compare_all(
            make_matrix(type, 16, 512, usual_kinds, *mx::format::find_element_format("e4m3"), 4),
            recipes, 1, pass);
    }
    CHECK(count > 10000);
}

TEST_CASE("counts: every instruction set, block shape and cut", "[parity]") {
    const auto& aimed_at = *mx::format::find_element_format("e4m3");
    for (const char* block : {"1x32", "1x16", "1x8", "1x2", "1x100", "1x128", "1x512", "32x1",
                              "16x1", "4x4", "16x16", "128x128", "3x5"}) {
        std::vector<std::string> texts;
        for (const char* preset : {"mxfp4", "mxint8", "nvfp4", "mxfp8"}) {
            texts.push_back(preset + std::string(":block=") + block);
        }
        const std::vector<recipe> recipes = mx::codec::parse_recipes(texts);
        INFO(block);
        const stored_matrix usual = make_matrix(dtype::bf16, 37, 511, usual_kinds, aimed_at, 9);
        const stored_matrix every = make_matrix(dtype::f16, 130, 96, every_kind, aimed_at, 9);
        for (const auto pass : passes_here()) {
            compare(usual, recipes, 3, pass);
            compare(every, recipes, 1, pass);
        }
        for (const recipe& r : recipes) compare(usual, {r}, 1, passes_here().back());
    }
}

TEST_CASE("counts: any bit pattern, and more tables than there are", "[parity]") {
    std::mt19937 random(11);
    stored_matrix m{dtype::bf16, 16, 2048, {}};
    m.bytes.resize(16 * 2048 * 2);
    for (const unsigned nan_in_1000 : {0u, 4u}) {
        for (std::size_t i = 0; i < m.bytes.size(); i += 2) {
            auto word = static_cast<std::uint16_t>(random());
            const bool spares = random() % 1000 >= nan_in_1000;
            if ((word & 0x7f80) == 0x7f80 && spares) word &= 0xbfff;
            std::memcpy(m.bytes.data() + i, &word, 2);
        }
        for (const char* text : {"mxfp4", "mxfp8:element=e5m2", "fp8_1x128:block=1x2", "nvfp4"}) {
            compare(m, {mx::codec::parse_recipe(text)}, 2, passes_here().back());
        }
    }
}

TEST_CASE("counts: exponents raised by position", "[parity]") {
    // Few numbers, so that in many blocks all elements get one code though not all are raised, or
    // become zeros; and scales near the largest power of two.
    std::mt19937 random(17);
    for (const int shift : {0, 126, -133}) {
        stored_matrix m{dtype::bf16, 64, 24, {}};
        m.bytes.resize(m.rows * m.cols * 2);
        for (std::size_t i = 0; i < m.bytes.size(); i += 2) {
            const float few[] = {0, 0.5f, 1, 1.5f, 1.75f, 1.875f, 2, 3.75f};
            const float x = std::ldexp(few[random() % 8], shift);
            const auto word =
                static_cast<std::uint16_t>(mx::base::bits_of(random() % 2 == 0 ? x : -x) >> 16);
            std::memcpy(m.bytes.data() + i, &word, 2);
        }
        for (const std::string block : {"1x2", "1x3", "1x8"}) {
            for (const char* format : {"mxfp4", "mxfp8", "mxint8"}) {
                const std::string text = format + (":dialect=systems-scaling,block=" + block);
                compare(m, {mx::codec::parse_recipe(text)}, 2, passes_here().back());
            }
        }
    }
}

TEST_CASE("counts: blocks with elements that become NaN", "[parity]") {
    // Under amd-hip a maximum of 1.9 becomes NaN in E4M3, and so do elements above 1.8125. The
    // others may be none, one, of one code, or so small that they become zeros.
    const std::vector<std::vector<float>> blocks{
        {1.9f, 0, 0, 0},
        {1.9f, 1.9f, 0, 0},
        {1.9f, 1.9f, -1.9f, 1.9f},
        {1.9f, 1, 0, 0},
        {1.9f, -1, 0, 0},
        {1.9f, 1, 1, 0},
        {1.9f, 1, -1, 0},
        {-1.9f, 1.75f, 1.75f, 1.8f},
        {1.9f, 1.75f, -1.8f, 1.7f},
        {1.9f, 0x1p-20f, 0, 0},
        {1.9f, 0x1p-20f, 0x1p-19f, 0},
        {1.9f, 0x1p-20f, 1, 0},
        {1.8f, 1.75f, 1.8f, 0},
        {1.8125f, 1, 1, 1},
        {1.8203125f, 1, 1, 1},
        {1.9f, 1.8125f, 1.75f, 1.75f},
        {1.9f, 1.8203125f, 1.75f, 1.75f},
    };
    for (const float factor : {1.0f, 0x1p100f, 0x1p-120f}) {
        stored_matrix m{dtype::bf16, 1, 4 * blocks.size(), {}};
        for (const std::vector<float>& b : blocks) {
            for (const float x : b) {
                const std::uint32_t word = mx::base::bits_of(x * factor) >> 16;
                m.bytes.push_back(static_cast<std::byte>(word & 0xff));
                m.bytes.push_back(static_cast<std::byte>(word >> 8));
            }
        }
        const std::vector<recipe> recipes =
            mx::codec::parse_recipes({"mxfp8:dialect=amd-hip,block=1x4", "mxfp4:block=1x4",
                                      "mxint8:block=1x4", "mxfp8_e5m2:dialect=amd-hip,block=1x4"});
        for (const auto pass : passes_here()) {
            CHECK(compare(m, recipes, 1, pass) == recipes.size());
            compare(m, {recipes.front()}, 1, pass);
        }
    }
}

TEST_CASE("counts: counts that are cleared begin again", "[parity]") {
    const auto& aimed_at = *mx::format::find_element_format("e4m3");
    const std::vector<recipe> recipes = mx::codec::parse_recipes({"mxfp4", "mxfp8"});
    const stored_matrix first = make_matrix(dtype::bf16, 32, 512, every_kind, aimed_at, 1);
    const stored_matrix second = make_matrix(dtype::bf16, 32, 512, every_kind, aimed_at, 2);
    const laid_out before = lay_out(first, recipes), after = lay_out(second, recipes);
    word_counts counts(dtype::bf16, before.asked, passes_here().back());
    const word_counts* const only = &counts;
    counts.add(before.values, before.segments, nullptr);
    counts.clear();
    counts.add(after.values, after.segments, nullptr);
    const auto got = mx::engine::counted_totals(std::span(&only, 1));
    const auto expected = by_reference(after);
    for (std::size_t r = 0; r < got.size(); ++r) CHECK(difference(got[r], expected[r]) == "");
}

TEST_CASE("counts: blocks and their halves together", "[parity]") {
    std::vector<mx::codec::word_passes> passes{{mx::codec::count_words, mx::codec::count_jointly}};
    for (const target t : {target::sse4, target::avx2, target::avx512, target::neon}) {
        if (mx::base::simd::supported(t)) passes.push_back(mx::codec::simd::word_passes_for(t));
    }
    const auto& aimed_at = *mx::format::find_element_format("e4m3");
    std::vector<stored_matrix> matrices{make_matrix(dtype::bf16, 64, 512, usual_kinds, aimed_at, 3),
                                        make_matrix(dtype::f16, 130, 96, every_kind, aimed_at, 4),
                                        make_matrix(dtype::bf16, 37, 511, every_kind, aimed_at, 5),
                                        make_matrix(dtype::bf16, 9, 48, usual_kinds, aimed_at, 6)};
    // More joint tables than there is room for.
    std::mt19937 random(12);
    matrices.push_back({dtype::bf16, 16, 4096, std::vector<std::byte>(16 * 4096 * 2)});
    for (std::byte& b : matrices.back().bytes) b = static_cast<std::byte>(random());
    const auto recipes =
        mx::codec::parse_recipes({"mxfp4", "mxfp8:scale=ceil", "mxint8", "mxfp6:scale=even"});
    const auto of_halves = mx::codec::parse_recipes({"nvfp4", "amdfp4", "mxint8:block=1x16"});
    for (const mx::codec::word_passes& by : passes) {
        mx::codec::joint_counts joint(by.joint);
        std::size_t full = 0;
        for (const stored_matrix& m : matrices) {
            const laid_out job = lay_out(m, recipes), halves = lay_out(m, of_halves);
            word_counts of_job(m.type, job.asked, by.one), of_half(m.type, halves.asked, by.one);
            joint.begin(of_job, of_half);
            joint.add(job.values, job.segments, nullptr);
            full += joint.full() ? 1 : 0;
            joint.settle();
            for (const auto& [counts, of] : {std::pair(&of_job, &job), {&of_half, &halves}}) {
                const word_counts* const only = counts;
                const auto got = mx::engine::counted_totals(std::span(&only, 1));
                const auto expected = by_reference(*of);
                REQUIRE(got.size() == of->asked.size());
                for (std::size_t r = 0; r < got.size(); ++r) {
                    CHECK(difference(got[r], expected[r]) == "");
                }
            }
        }
        CHECK(full != 0);
        CHECK(full != matrices.size());
    }
}

TEST_CASE("counts: an analysis that counts has the figures of one that does not", "[parity]") {
    const auto& aimed_at = *mx::format::find_element_format("e4m3");
    // Two block shapes, and quantized recipes next to counted ones.
    const std::vector<recipe> recipes = mx::codec::parse_recipes(
        {"mxfp4", "mxfp8", "mxfp4:round=stochastic,seed=1", "mxint8", "nvfp4:scale=single-level",
         "mxfp4:block=1x16", "mxfp4:dialect=torchao", "mxfp4:transform=hadamard"});
    const auto texts_of = [&](const stored_matrix& m, const mx::engine::run_control& control) {
        std::vector<std::string> out;
        const mx::analysis::matrix whole{m.type, m.bytes.data(), m.rows, m.cols, "m"};
        for (const auto& one : mx::analysis::analyze_matrix(whole, recipes, false, control, true)) {
            mx::metrics::totals totals = one.totals;
            mx::base::archive text;
            totals.serialize(text);
            out.push_back(text.text());
        }
        return out;
    };
    for (const dtype type : {dtype::bf16, dtype::f16, dtype::f32}) {
        const stored_matrix m = make_matrix(type, 320, 1000, every_kind, aimed_at, 21);
        mx::engine::run_control control;
        control.backend = &mx::codec::backend_named("scalar");
        control.counted_elements = 0;
        const auto expected = texts_of(m, control);
        control.backend = nullptr;
        for (const int threads : {1, 3}) {
            control.threads = threads;
            CHECK(texts_of(m, control) == expected);
        }
    }
}

TEST_CASE("counts: large tensors under several recipes are counted", "[parity]") {
    const auto counted = [](const std::vector<std::string>& texts, std::uint64_t elements) {
        std::vector<mx::codec::block_params> params;
        for (const recipe& r : mx::codec::parse_recipes(texts)) {
            params.push_back(mx::codec::params_of(r));
        }
        std::vector<mx::codec::recipe_request> asked(params.size());
        for (std::size_t r = 0; r < asked.size(); ++r) asked[r].params = &params[r];
        mx::engine::run_control control;
        return mx::engine::is_counted(control, elements, asked);
    };
    const std::vector<std::string> four{"mxfp4", "mxfp8", "mxfp6", "mxint8"};
    CHECK(counted(four, 1u << 24));
    CHECK(!counted(four, 1u << 16));
    CHECK(!counted({"mxfp4"}, 1u << 20));
    CHECK(counted({"mxfp4"}, 1u << 24));
    CHECK(counted({"nvfp4"}, 1u << 24));
}
