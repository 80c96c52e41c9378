// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/input_transform.hpp"
#include "libmx/engine/panel_quantizer.hpp"
#include "libmx/studies/diff/diff.hpp"
#include "tests/catch.hpp"
#include "tests/memory_model.hpp"

using namespace mx;
using report::find;
using tensor::dtype;

namespace {

double number(const report::record& r, const std::string& name) {
    const report::value& v = *find(r, name);
    if (const auto* n = std::get_if<std::int64_t>(&v)) return static_cast<double>(*n);
    return std::get<double>(v);
}

std::string words(const report::record& r, const char* name) {
    return std::get<std::string>(*find(r, name));
}

bool is_null(const report::record& r, const std::string& name) {
    return std::holds_alternative<std::monostate>(*find(r, name));
}

struct options {
    std::vector<std::string> labels = {};
    int threads = 1;
    float norm_bias = 0;
    std::vector<std::string> groups = {};
};

diff::diff_result diff_of(const std::vector<const tests::memory_model*>& models,
                          const std::vector<std::string>& recipes, const options& o = {}) {
    diff::diff_request request;
    std::vector<const io::reader*> dumps;
    std::vector<engine::tensor_ref> chosen;
    for (const tests::memory_model* m : models) {
        dumps.push_back(m);
        request.paths.push_back(std::string(1, static_cast<char>('a' + dumps.size() - 1)));
        for (const engine::tensor_ref& t : m->all()) chosen.push_back(t);
    }
    request.labels = diff::label_dumps(request.paths, o.labels);
    for (const std::string& r : recipes) request.recipes.push_back(codec::parse_recipe(r));
    request.norm_bias = o.norm_bias;
    request.groups = o.groups;
    engine::run_control control;
    control.threads = o.threads;
    return diff::diff(dumps, chosen, request, control);
}

tests::memory_model one(const std::string& name, const tensor::shape& shape,
                        const std::vector<float>& values) {
    tests::memory_model m;
    m.add(name, dtype::f32, shape, values);
    return m;
}

std::vector<float> gaussian(std::size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> x(n);
    for (float& v : x) v = normal(random);
    return x;
}

// A training step: most values change a little, some do not change.
std::vector<float> moved(std::vector<float> x, unsigned seed, float by) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (float& v : x) {
        const float step = normal(random);
        if (step > -1) v += by * step * v;
    }
    return x;
}

// Every block of a whole tensor, one after the other.
struct quantized {
    std::vector<std::vector<std::uint8_t>> codes;
    std::vector<block::block_stats> stats;
};

quantized quantize_whole(const std::string& name, const tensor::shape& shape,
                         const std::vector<float>& stored, const codec::recipe& r) {
    std::string reason;
    const block::grid g = engine::lay_out(shape, r, reason).value().grid;
    const std::vector<float> x = engine::prepared({0, 1, r.rotate}, g, stored);
    codec::tensor_facts facts;
    for (const float v : x) {
        if (std::isfinite(v))
            facts.amax_bits = std::max(facts.amax_bits, base::bits_of(std::abs(v)));
    }
    const engine::panel all{0, g.over.batch, 0, g.over.rows, 0, g.over.cols};
    engine::run_control control;
    control.backend = &codec::backend_named("scalar");
    engine::panel_quantizer by(control);
    const codec::block_params params = codec::params_of(r, facts);
    const codec::recipe_request request{&params, codec::detail::stats};
    const codec::stored_values values{tensor::dtype::f32, std::as_bytes(std::span(x)).data(),
                                      all.cols};
    quantized q;
    by.run(g, all, values, base::tensor_id(name), {&request, 1},
           [&](const engine::quantized_segment& s) {
               const codec::block_results& d = s.by_recipe.front().of_blocks;
               for (std::size_t b = 0; b < d.blocks; ++b) {
                   const std::uint8_t* codes = d.codes + b * d.stride;
                   q.codes.emplace_back(codes, codes + codec::extent_of(s.place, b).size());
                   for (std::uint8_t& c : q.codes.back()) {
                       if (params.value[c] == 0) c = 0;  // -0 and 0 are one value
                   }
                   q.stats.push_back(d.stats[b]);
               }
           });
    return q;
}

bool same_scale(const block::block_stats& a, const block::block_stats& b, const codec::recipe& r) {
    if (codec::scales_have_codes(r)) {
        return a.scale_code == b.scale_code && a.offset == b.offset;
    }
    return a.scale == b.scale || (std::isnan(a.scale) && std::isnan(b.scale));
}

void check_codes(const report::record& r, const codec::recipe& recipe, const quantized& a,
                 const quantized& b, const quantized* c) {
    double scales = 0, codes = 0, equal = 0, equal_moved = 0, flipped = 0, elements = 0;
    for (std::size_t k = 0; k < a.codes.size(); ++k) {
        const bool same = same_scale(a.stats[k], b.stats[k], recipe);
        scales += same ? 0 : 1;
        for (std::size_t i = 0; i < a.codes[k].size(); ++i) {
            const bool differs = a.codes[k][i] != b.codes[k][i];
            ++elements;
            codes += differs;
            equal += same;
            equal_moved += same && differs;
            if (c != nullptr) flipped += differs && c->codes[k][i] == a.codes[k][i];
        }
    }
    CHECK(number(r, "blocks") == static_cast<double>(a.codes.size()));
    CHECK(number(r, "moved_scales") == scales);
    CHECK(number(r, "moved_codes") == codes);
    CHECK(number(r, "elements_at_equal_scale") == equal);
    CHECK(number(r, "moved_codes_at_equal_scale") == equal_moved);
    CHECK(number(r, "scale_churn") == scales / static_cast<double>(a.codes.size()));
    CHECK(number(r, "codes_moved") == codes / elements);
    if (c == nullptr) {
        CHECK(is_null(r, "oscillation"));
    } else {
        CHECK(number(r, "oscillation") == flipped / elements);
    }
}

void check_values(const report::record& r, const std::vector<float>& a,
                  const std::vector<float>& b) {
    long double a2 = 0, b2 = 0, ab = 0, d2 = 0, d = 0, largest = 0;
    double compared = 0, changed = 0, signs = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        changed += a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i]));
        signs += a[i] == 0 && b[i] == 0 && std::signbit(a[i]) != std::signbit(b[i]);
        if (!std::isfinite(a[i]) || !std::isfinite(b[i])) continue;
        ++compared;
        const long double x = a[i];
        const long double y = b[i];
        a2 += x * x;
        b2 += y * y;
        ab += x * y;
        d2 += (y - x) * (y - x);
        d += y - x;
        largest = std::max(largest, std::abs(y - x));
    }
    const auto near = [](long double x) { return Approx(static_cast<double>(x)).epsilon(1e-12); };
    CHECK(number(r, "elements") == static_cast<double>(a.size()));
    CHECK(number(r, "compared") == compared);
    CHECK(number(r, "changed_values") == changed);
    CHECK(number(r, "changed_zero_signs") == signs);
    CHECK(number(r, "rmse") == near(std::sqrt(d2 / static_cast<long double>(compared))));
    CHECK(number(r, "nrmse") == near(std::sqrt(d2 / a2)));
    CHECK(number(r, "max_abs_difference") == near(largest));
    CHECK(number(r, "cosine") == near(ab / std::sqrt(a2 * b2)));
    CHECK(number(r, "mean_drift") ==
          Approx(static_cast<double>(d / static_cast<long double>(compared))).margin(1e-15));
}

}  // namespace

TEST_CASE("-0 and 0 are one value, and changes of sign alone are counted apart") {
    // -0.1 and 0.1 are rounded to -0 and 0.
    const auto a = one("w", {2, 4}, {1, 0.0f, 3, 4, 1, 0.1f, 3, 4});
    const auto b = one("w", {2, 4}, {1, -0.0f, 3, 4, 1, -0.1f, 3, 4});
    const auto d = diff_of({&a, &b}, {"mxfp4:block=1x4"});
    const report::record ab = d.results[0];
    CHECK(number(ab, "changed_values") == 1);
    CHECK(number(ab, "changed_zero_signs") == 1);
    CHECK(number(ab, "moved_codes") == 0);
    CHECK_FALSE(d.identical);
    const auto c = one("w", {2, 4}, {1, -0.0f, 3, 4, 1, 0.1f, 3, 4});
    const auto signs = diff_of({&a, &c}, {"mxfp4:block=1x4"});
    CHECK(number(signs.results[0], "values_changed") == 0);
    CHECK_FALSE(signs.identical);
}

TEST_CASE("scales, codes and values that moved are counted as by hand") {
    // Under floor E2M1 a maximum of 4 or 6 gives S = 1, one of 8 gives S = 2.
    const auto a = one("w", {2, 4}, {1, 2, 3, 4, 1, 2, 3, 4});
    const auto b = one("w", {2, 4}, {1, 2, 3, 6, 1, 2, 3, 8});
    const auto c = one("w", {2, 4}, {1, 2, 3, 4, 1, 2, 3, 8});
    const auto d = diff_of({&a, &b, &c}, {"mxfp4:block=1x4"});
    REQUIRE(d.results.size() == 2);
    CHECK_FALSE(d.identical);
    const report::record ab = d.results[0];
    CHECK(words(ab, "file_a") == "a");
    CHECK(words(ab, "file_b") == "b");
    CHECK(words(ab, "dtype") == "F32");
    CHECK(number(ab, "scale_churn") == 0.5);
    CHECK(number(ab, "codes_moved") == 0.5);                  // 6; 1, 2 and 3 over the new scale
    CHECK(number(ab, "codes_moved_at_equal_scale") == 0.25);  // 6
    CHECK(number(ab, "oscillation") == 0.125);                // 4, 6, 4
    CHECK(number(ab, "values_changed") == 0.25);
    CHECK(number(ab, "rmse") == std::sqrt(20.0 / 8));
    CHECK(number(ab, "nrmse") == std::sqrt(20.0 / 60));
    CHECK(number(ab, "max_abs_difference") == 4);
    CHECK(number(ab, "mean_drift") == 0.75);
    CHECK(number(ab, "cosine") == Approx(84 / std::sqrt(60.0 * 128)).epsilon(1e-14));
    CHECK(number(ab, "clamp_rate_a") == 0);
    const report::record bc = d.results[1];
    CHECK(number(bc, "scale_churn") == 0);
    CHECK(number(bc, "codes_moved") == 0.125);
    CHECK(number(bc, "codes_moved_at_equal_scale") == 0.125);
    CHECK(is_null(bc, "oscillation"));

    REQUIRE(d.series.size() == 1);
    const auto list = [&](const char* name) {
        return std::get<report::list>(*find(d.series[0], name));
    };
    CHECK(list("scale_churn") == report::list{report::value(), 0.5, 0.0});
    CHECK(list("codes_moved") == report::list{report::value(), 0.5, 0.125});
    CHECK(list("oscillation") == report::list{report::value(), 0.125, report::value()});
    CHECK(list("clamp_rate") == report::list{0.0, 0.0, 0.0});
    CHECK(number(d.series[0], "oscillation_over_all") == 0.125);
    REQUIRE(d.summary.size() == 2);
    CHECK(number(d.summary[0], "codes_moved") == 0.5);
    CHECK(diff_of({&a, &b}, {"mxfp4:block=1x4"}).series.empty());
}

TEST_CASE("a comparison equals one that holds whole tensors") {
    const std::vector<std::string> recipes{
        "mxfp8",
        "mxfp4:scale=even",
        "mxfp4:block=32x1",
        "mxint4:offset=fp16,block=1x16",
        "mxfp4:round=stochastic,seed=5",
        "mxfp6:block=7x5",
        "mxfp8:scale=rceil,axis=flat",
        "nvfp4",
        "fp8_128x128",
        "mxfp8:dialect=systems-scaling",
        "mxfp4:transform=hadamard",
        "mxfp4:transform=hadamard,scale=even",
        "nvfp4:transform=random-hadamard,transform_size=16",
        "mxfp8:block=32x1,transform=hadamard",
    };
    const std::vector<std::pair<std::string, tensor::shape>> tensors{
        {"wide", {3, 70001}}, {"tall", {4099, 5}}, {"stack", {3, 37, 41}},
        {"vector", {1000}},   {"scalar", {}},
    };
    tests::memory_model dumps[3];
    std::vector<std::vector<float>> values[3];
    unsigned seed = 1;
    for (const auto& [name, shape] : tensors) {
        const std::size_t n = *tensor::element_count(shape);
        values[0].push_back(gaussian(n, seed));
        values[1].push_back(moved(values[0].back(), seed + 1, 0.1F));
        values[2].push_back(moved(values[0].back(), seed + 2, 0.01F));
        if (n > 500) {
            values[0].back()[7] = std::numeric_limits<float>::quiet_NaN();
            values[1].back()[7] = -std::numeric_limits<float>::quiet_NaN();
            values[1].back()[99] = std::numeric_limits<float>::infinity();
            values[2].back()[98] = 0;
        }
        for (int d = 0; d < 3; ++d) dumps[d].add(name, dtype::f32, shape, values[d].back());
        seed += 3;
    }
    const std::vector<const tests::memory_model*> models{&dumps[0], &dumps[1], &dumps[2]};
    const auto together = diff_of(models, recipes, {{}, 2});
    REQUIRE(together.left_out.empty());
    REQUIRE(together.results.size() == tensors.size() * recipes.size() * 2);
    std::size_t at = 0;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
        for (const std::string& text : recipes) {
            const codec::recipe r = codec::parse_recipe(text);
            const auto& [name, shape] = tensors[t];
            quantized q[3];
            for (int d = 0; d < 3; ++d) q[d] = quantize_whole(name, shape, values[d][t], r);
            for (std::size_t pair = 0; pair < 2; ++pair, ++at) {
                CAPTURE(name, text, pair);
                const report::record got = together.results[at];
                CHECK(words(got, "tensor") == name);
                CHECK(words(got, "recipe") == codec::to_string(r));
                check_values(got, values[pair][t], values[pair + 1][t]);
                check_codes(got, r, q[pair], q[pair + 1], pair == 0 ? &q[2] : nullptr);
            }
        }
    }
    // The figures of a single dump equal those of an analysis.
    analysis::analysis_request request;
    for (const std::string& text : recipes) request.recipes.push_back(codec::parse_recipe(text));
    const analysis::analysis analysis = analysis::analyze(dumps[1].all(), request, {});
    REQUIRE(analysis.results.size() * 2 == together.results.size());
    for (std::size_t i = 0; i < analysis.results.size(); ++i) {
        const report::record dump = mx::analysis::record_of(analysis.results[i]);
        const report::record as_b = together.results[2 * i];
        const report::record as_a = together.results[2 * i + 1];
        for (const char* rate : {"overflow_rate", "clamp_rate", "saturated_block_rate"}) {
            CHECK(*find(as_b, std::string(rate) + "_b") == *find(dump, rate));
            CHECK(*find(as_a, std::string(rate) + "_a") == *find(dump, rate));
        }
        CHECK(*find(as_b, "tensor_scale_b") == *find(dump, "tensor_scale"));
    }
}

TEST_CASE("a comparison does not depend on threads or on how panels are cut") {
    const std::vector<float> x = gaussian(450000, 1);
    tests::memory_model a, b, c;
    a.add("wide", dtype::f32, {3, 150000}, x);
    b.add("wide", dtype::f32, {3, 150000}, moved(x, 2, 0.05F));
    c.add("wide", dtype::f32, {3, 150000}, moved(x, 3, 0.05F));
    a.add("w.norm", dtype::f32, {50000, 7}, gaussian(350000, 4));
    b.add("w.norm", dtype::f32, {50000, 7}, gaussian(350000, 5));
    c.add("w.norm", dtype::f32, {50000, 7}, gaussian(350000, 6));
    // Blocks that fit no other: panels with them have other sides.
    const std::vector<std::string> recipes{
        "mxfp4",           "mxfp8:block=1x48", "nvfp4:block=1x16",
        "mxfp6:block=7x5", "mxfp8:axis=flat",  "mxfp4:transform=hadamard,transform_size=64"};
    const auto all = diff_of({&a, &b, &c}, recipes, {{}, 1});
    REQUIRE(all.results.size() == 2 * recipes.size() * 2);
    for (const int threads : {2, 7}) {
        const auto again = diff_of({&a, &b, &c}, recipes, {{}, threads});
        REQUIRE(again.results.size() == all.results.size());
        for (std::size_t i = 0; i < all.results.size(); ++i) {
            CHECK(again.results[i] == all.results[i]);
        }
        CHECK(again.series == all.series);
        CHECK(again.summary == all.summary);
    }
    for (std::size_t r = 0; r < recipes.size(); ++r) {
        const auto alone = diff_of({&a, &b, &c}, {recipes[r]}, {{}, 3});
        for (std::size_t i = 0; i < alone.results.size(); ++i) {
            const std::size_t tensor = i / 2;
            CHECK(alone.results[i] == all.results[(tensor * recipes.size() + r) * 2 + i % 2]);
        }
    }
}

TEST_CASE("dtypes may differ; the values are compared as float32") {
    const auto a = one("w", {4}, {1, 2, 3, 4});
    tests::memory_model b;
    b.add("w", dtype::bf16, {4}, std::vector<std::uint16_t>{0x3f80, 0x4000, 0x4040, 0x4080});
    const auto d = diff_of({&a, &b}, {"mxfp8"});
    CHECK(d.identical);
    CHECK(d.elements == 4);
    CHECK(words(d.results.front(), "dtype") == "F32");
    CHECK(words(d.results.front(), "dtype_b") == "BF16");
    CHECK(number(d.results.front(), "nrmse") == 0);
    CHECK(number(d.results.front(), "codes_moved") == 0);
}

TEST_CASE("what cannot be compared is left out with its reason") {
    tests::memory_model a, b;
    const std::vector<float> four{1, 2, 3, 4};
    a.add("same", dtype::f32, {4}, four);
    a.add("shape", dtype::f32, {4}, four);
    a.add("gone", dtype::f32, {4}, four);
    a.add("packed", dtype::f32, {4}, four);
    a.add("mask", dtype::boolean, {4}, std::vector<std::uint8_t>{0, 1, 0, 1});
    a.add("none", dtype::f32, {0}, std::vector<float>{});
    b.add("new", dtype::f32, {4}, four);
    b.add("same", dtype::f32, {4}, std::vector<float>{1, 2, 3, 5});
    b.add("shape", dtype::f32, {2, 2}, four);
    b.add("packed.codes", dtype::u8, {2}, std::vector<std::uint8_t>{1, 2});
    b.add("mask", dtype::boolean, {4}, std::vector<std::uint8_t>{0, 1, 0, 1});
    b.add("none", dtype::f32, {0}, std::vector<float>{});
    const auto d = diff_of({&a, &b}, {"mxfp8", "mxfp8:axis=1"});
    REQUIRE(d.results.size() == 1);
    CHECK(words(d.results.front(), "tensor") == "same");
    std::vector<std::pair<std::string, std::string>> reasons;
    for (const auto& s : d.left_out) reasons.emplace_back(s.tensor, s.reason);
    REQUIRE(reasons.size() == 8);
    CHECK(reasons[0] == std::pair<std::string, std::string>("shape", "shape 4 in a, 2x2 in b"));
    CHECK(reasons[1] == std::pair<std::string, std::string>("gone", "not in b"));
    CHECK(reasons[2].first == "packed");
    CHECK(reasons[2].second == "packed in b; unpack that with 'mx dequantize' first");
    CHECK(reasons[3].first == "mask");
    CHECK(reasons[3].second.find("BOOL") == 0);
    CHECK(reasons[4] == std::pair<std::string, std::string>("none", "it has no elements"));
    CHECK(reasons[5] == std::pair<std::string, std::string>("new", "not in a"));
    CHECK(reasons[6] == std::pair<std::string, std::string>("packed.codes", "not in a"));
    CHECK(reasons[7].first == "same");
    CHECK(d.left_out[7].recipe == "mxfp8:axis=1");

    // Files of one array each are named after themselves.
    const auto step1 = one("step1", {4}, four);
    const auto step2 = one("step2", {4}, four);
    CHECK(diff_of({&step1, &step2}, {"mxfp8"}).identical);
}

TEST_CASE("norm gains that come nearer to the clamp zone are found, with the norm bias too") {
    // Under floor E4M3 overflows beyond 448 = 1.75 * 2^8.
    const std::string recipe = "mxfp8:block=1x2";
    const std::string name = "layers.3.ffn_norm.weight";
    const auto a = one(name, {3, 2}, {1, 1.5, 1, 1.875, 0, 0});
    const auto b = one(name, {3, 2}, {1, 1.9375, 1, 3.875, 0, 0});
    const auto d = diff_of({&a, &b}, {recipe, "mxfp8:block=1x2,scale=rceil"});
    REQUIRE(d.results.size() == 2);
    const report::record r = d.results[0];
    CHECK(words(r, "role") == "norm");
    CHECK(number(r, "layer") == 3);
    CHECK(number(r, "clamp_zone_blocks_a") == 1);
    CHECK(number(r, "clamp_zone_rate_a") == 0.5);
    CHECK(number(r, "clamp_zone_rate_b") == 1);
    CHECK(number(r, "clamp_zone_distance_a") ==
          Approx((std::log2(1.5 / 1.75) + std::log2(1.875 / 1.75)) / 2).epsilon(1e-14));
    CHECK(number(r, "clamp_zone_distance_b") == Approx(std::log2(1.9375 / 1.75)).epsilon(1e-14));
    CHECK(is_null(d.results[1], "clamp_zone_rate_a"));  // rceil has no such zone
    REQUIRE(d.findings.size() == 1);
    CHECK(diff::sentence_of(d.findings[0], {{"a", "b"}, {}}) ==
          "norm gains of layers.3.ffn_norm.weight rose into the clamp zone of mxfp8:block=1x2: "
          "1 -> 2 of 2 blocks in it, mean distance -0.061 -> 0.147 octaves.");
    CHECK(diff_of({&b, &a}, {recipe}).findings.empty());

    // The same gains stored as gamma - 1, and a weight to which the bias does not apply.
    tests::memory_model low_a, low_b;
    low_a.add(name, dtype::f32, {3, 2}, std::vector<float>{0, 0.5, 0, 0.875, -1, -1});
    low_b.add(name, dtype::f32, {3, 2}, std::vector<float>{0, 0.9375, 0, 2.875, -1, -1});
    low_a.add("w", dtype::f32, {1, 2}, std::vector<float>{1, 2});
    low_b.add("w", dtype::f32, {1, 2}, std::vector<float>{1, 3});
    const auto biased = diff_of({&low_a, &low_b}, {recipe}, {{}, 1, 1.0F});
    REQUIRE(biased.results.size() == 2);
    const report::record norm = biased.results[0];
    for (const char* field : {"clamp_zone_distance_a", "clamp_zone_rate_b", "nrmse", "cosine",
                              "codes_moved", "overflow_rate_b"}) {
        CHECK(*find(norm, field) == *find(r, field));
    }
    CHECK(number(biased.results[1], "nrmse") == std::sqrt(1.0 / 5));
    CHECK(is_null(biased.results[1], "clamp_zone_rate_a"));
}

TEST_CASE("norm gains that fall approach the clamp zone one binade below") {
    const std::string name = "layers.0.norm.weight";
    const auto at = [&](float gain) {
        return one(name, {1, 4}, std::vector<float>{gain, gain, gain, gain});
    };
    const auto a = at(1.25F), b = at(1.1875F), c = at(1.125F), e = at(0.96875F);
    const diff::dump_labels three{{"100", "200", "300"}, {100, 200, 300}};
    const auto nearing = diff_of({&a, &b, &c}, {"mxfp8"});
    REQUIRE(nearing.findings.size() == 1);
    CHECK(nearing.findings[0].falling);
    CHECK(nearing.findings[0].distance.front() == Approx(-std::log2(1.25)));
    CHECK(nearing.findings[0].distance.back() == Approx(-std::log2(1.125)));
    REQUIRE(nearing.findings[0].forecast);
    CHECK(nearing.findings[0].forecast->ahead == Approx(2.236).epsilon(0.001));
    const std::string words = diff::sentence_of(nearing.findings[0], three);
    CHECK(words.find("fall toward the clamp zone of mxfp8: 0 -> 0 -> 0 of 1 block in it") !=
          std::string::npos);
    const auto fallen = diff_of({&a, &b, &e}, {"mxfp8"});
    REQUIRE(fallen.findings.size() == 1);
    CHECK(fallen.findings[0].distance.back() == Approx(std::log2(2 / 1.9375)));
    CHECK(diff::sentence_of(fallen.findings[0], three).find("fell into the clamp zone") !=
          std::string::npos);
    // Leaving the zone, upwards or downwards, is not drift towards it.
    const auto f = at(1.875F), g = at(1.5F);
    CHECK(diff_of({&f, &g}, {"mxfp8"}).findings.empty());
}

TEST_CASE("blocks that are about to fall through a power of two are counted one by one") {
    // The mean does not change: one block of four falls, another rises by as much. Of the falling
    // ones, only the first reaches the zone after three more such falls.
    const std::string name = "layers.0.norm.weight";
    const std::string recipe = "mxfp8:block=1x2";
    const auto gains = [&](const std::vector<float>& maxima) {
        std::vector<float> x;
        for (const float m : maxima) x.insert(x.end(), {m / 2, m});
        return one(name, {1, x.size()}, x);
    };
    const auto a = gains({1.25F, 1.5F, 1.125F, 1.625F, 0});
    const auto b = gains({1.125F, 1.6875F, 1.125F, 1.5625F, 0});
    const auto d = diff_of({&a, &b}, {recipe, recipe + ",scale=rceil"});
    REQUIRE(d.results.size() == 2);
    CHECK(number(d.results[0], "falling_blocks") == 1);
    const double falls = std::log2(1.125) / std::log2(1.25 / 1.125);
    CHECK(number(d.results[0], "falls_left") == Approx(falls));
    CHECK(is_null(d.results[1], "falling_blocks"));
    CHECK(is_null(d.results[1], "falls_left"));
    CHECK(d.findings.empty());  // two may be an original and a quantized copy
    const auto three = diff_of({&a, &a, &b}, {recipe});
    REQUIRE(three.findings.size() == 1);
    REQUIRE(three.findings[0].fall);
    CHECK(three.findings[0].fall->blocks == 1);
    CHECK(three.findings[0].fall->ahead == Approx(falls));
    CHECK(
        diff::sentence_of(three.findings[0], {{"a", "b", "c"}, {}})
            .find("At the pace of the last two dumps, 1 of 4 block maxima falls through a power of "
                  "two into it, the first in about 1.1 dumps.") != std::string::npos);
    const diff::dump_labels steps{{"100", "300"}, {100, 300}};
    diff::move_figures moved;
    moved.falling_blocks = 2;
    moved.fastest_fall = 0.25;
    const auto fall = diff::fall_of(moved, steps);
    REQUIRE(fall);
    CHECK(fall->ahead == Approx(600));
    CHECK(fall->at == Approx(900));
    // A maximum that is a power of two reaches the zone with the next fall, however small.
    const auto c = gains({1.0F, 1.6875F, 1.125F, 1.5625F, 0});
    CHECK(number(diff_of({&b, &c}, {recipe}).results[0], "falls_left") == 0);
    // One that is in the zone, and one that rises, are not on their way down.
    const auto e = gains({0.9375F, 1.75F, 1.25F, 1.625F, 0});
    CHECK(number(diff_of({&c, &e}, {recipe}).results[0], "falling_blocks") == 0);
}

TEST_CASE("a drift is extrapolated only along a line") {
    const auto dumps_at = [](const std::vector<double>& distances) {
        std::vector<diff::mean_maxima> dumps;
        for (const double x : distances) dumps.push_back({.blocks = 4, .distance = x});
        return dumps;
    };
    const diff::dump_labels steps{{"100", "200", "300"}, {100, 200, 300}};
    const diff::dump_labels names{{"a", "b", "c"}, {}};
    const auto line = diff::drift_of("n", "mxfp8", dumps_at({-0.4, -0.3, -0.2}), steps);
    REQUIRE(line);
    REQUIRE(line->forecast);
    CHECK(line->forecast->at == Approx(500));
    CHECK(line->forecast->r2 == Approx(1));
    CHECK(diff::sentence_of(*line, steps)
              .find("in about 200 steps (near step 500): a line "
                    "through 3 dumps") != std::string::npos);
    const auto unknown = diff::drift_of("n", "mxfp8", dumps_at({-0.4, -0.3, -0.2}), names);
    REQUIRE(unknown);
    CHECK(unknown->forecast.value().at == Approx(2));

    const auto bent = diff::drift_of("n", "mxfp8", dumps_at({-0.4, -0.39, -0.2}), steps);
    REQUIRE(bent);
    CHECK_FALSE(bent->forecast);
    const diff::dump_labels two{{"a", "b"}, {}};
    const auto short_of = diff::drift_of("n", "mxfp8", dumps_at({-0.4, -0.3}), two);
    REQUIRE(short_of);
    CHECK_FALSE(short_of->forecast);
    CHECK_FALSE(diff::drift_of("n", "mxfp8", dumps_at({-0.3, -0.4}), two));
    CHECK_FALSE(diff::drift_of("n", "mxfp8", dumps_at({-0.4, -0.39}), two));
    const auto slow = diff::drift_of("n", "mxfp8", dumps_at({-0.8, -0.79, -0.78}), steps);
    REQUIRE(slow);
    CHECK_FALSE(slow->forecast);
}

TEST_CASE("dumps are called by their step where their paths differ in a number only") {
    const auto label = [](const std::vector<std::string>& paths,
                          const std::vector<std::string>& given = {}) {
        return diff::label_dumps(paths, given);
    };
    const auto steps = label({"run1/step050.npz", "run1/step100.npz", "run1/step1000.npz"});
    CHECK(steps.text == std::vector<std::string>{"50", "100", "1000"});
    CHECK(steps.steps == std::vector<std::uint64_t>{50, 100, 1000});
    const auto folders = label({"ckpt/7/model.npz", "ckpt/8/model.npz"});
    CHECK(folders.steps == std::vector<std::uint64_t>{7, 8});
    const std::vector<std::string> other{"model_fp16.npz", "model_int8.npz"};
    CHECK(label(other).text == other);
    CHECK(label(other).steps.empty());
    const std::vector<std::string> twice{"a1b1.npz", "a2b2.npz"};
    CHECK(label(twice).text == twice);
    const std::vector<std::string> same{"a1.npz", "a1.npz"};
    CHECK(label(same).text == same);
    // Numbers that do not grow are names.
    CHECK(label({"b2.npz", "b1.npz"}).steps.empty());
    CHECK(label({"x", "y"}, {"10", "20"}).steps == std::vector<std::uint64_t>{10, 20});
    CHECK(label({"x", "y"}, {"first", "last"}).text == std::vector<std::string>{"first", "last"});
    CHECK_THROWS_AS(label({"x", "y"}, {"1", "2", "3"}), base::error);
    CHECK_THROWS_AS(label({"x", "y"}, {"1"}), base::error);
}

TEST_CASE("dumps that differ in numbers only are ordered by them") {
    using names = std::vector<std::string>;
    CHECK(diff::by_number({"s100.npz", "s1000.npz", "s200.npz"}) ==
          names{"s100.npz", "s200.npz", "s1000.npz"});
    CHECK(diff::by_number({"run1/10/m.npz", "run1/9/m.npz", "run1/008/m.npz"}) ==
          names{"run1/008/m.npz", "run1/9/m.npz", "run1/10/m.npz"});
    // Longer than any integer.
    CHECK(diff::by_number({"a200000000000000000000", "a100000000000000000000", "a3"}) ==
          names{"a3", "a100000000000000000000", "a200000000000000000000"});
    // Several numbers that grow together.
    CHECK(diff::by_number({"epoch10-step300", "epoch2-step90", "epoch2-step100"}) ==
          names{"epoch2-step90", "epoch2-step100", "epoch10-step300"});
    // Names that are not a series keep their order.
    for (const names& given :
         {names{"v2-s100", "v1-s200"}, names{"b10", "a9"}, names{"m10.npz", "m9.npz", "other"},
          names{"x", "x"}, names{"s2", "s1", "s2"}, names{"a2", "a01", "a1"}, names{"s2", "s1.npz"},
          names{"2", "s1"}, names{}}) {
        CHECK(diff::by_number(given) == given);
    }
}

TEST_CASE("one dump, and more than fit, are refused") {
    const auto a = one("w", {1}, {1});
    CHECK_THROWS_AS(diff_of({&a}, {"mxfp8"}), base::error);
    CHECK_THROWS_AS(
        diff_of(std::vector<const tests::memory_model*>(diff::most_dumps + 1, &a), {"mxfp8"}),
        base::error);
    CHECK(diff_of(std::vector<const tests::memory_model*>(diff::most_dumps, &a), {"mxfp8"})
              .identical);
}

TEST_CASE("a group of tensors is compared like the stack of them") {
    tests::memory_model a, b, stack_a, stack_b;
    std::vector<float> all_a, all_b;
    for (int e = 0; e < 3; ++e) {
        std::mt19937 random(static_cast<unsigned>(e));
        std::normal_distribution<float> normal(0, 1);
        std::vector<float> x(64 * 64), y;
        for (float& v : x) v = normal(random);
        for (const float v : x) y.push_back(v * (e == 1 ? 1.25F : 1.01F));
        const std::string name = "layers.0.experts." + std::to_string(e) + ".up.weight";
        a.add(name, dtype::f32, {64, 64}, x);
        b.add(name, dtype::f32, {64, 64}, y);
        all_a.insert(all_a.end(), x.begin(), x.end());
        all_b.insert(all_b.end(), y.begin(), y.end());
    }
    stack_a.add("layers.0.experts.weight", dtype::f32, {3, 64, 64}, all_a);
    stack_b.add("layers.0.experts.weight", dtype::f32, {3, 64, 64}, all_b);
    const auto whole = diff_of({&stack_a, &stack_b, &stack_a}, {"mxfp4", "mxfp8"});
    const auto group =
        diff_of({&a, &b, &a}, {"mxfp4", "mxfp8"}, {.threads = 2, .groups = {"experts.*"}});
    REQUIRE(group.results.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
        const report::record g = group.results[i], w = whole.results[i];
        CHECK(words(g, "tensor") == "layers.0.experts.*.up.weight");
        CHECK(number(g, "members") == 3);
        CHECK(words(g, "worst_member") == "layers.0.experts.1.up.weight");
        for (const char* name :
             {"elements", "changed_values", "rmse", "nrmse", "max_abs_difference", "cosine",
              "mean_drift", "blocks", "moved_scales", "codes_moved", "moved_codes_at_equal_scale",
              "clamp_rate_a", "overflow_rate_b", "saturated_block_rate_b"}) {
            CAPTURE(name);
            CHECK(*find(g, name) == *find(w, name));
        }
    }
    CHECK(number(group.results[0], "worst_member_nrmse") == Approx(0.25).epsilon(1e-6));
    REQUIRE(group.series.size() == 2);
    CHECK(*find(group.series[1], "codes_moved") == *find(whole.series[1], "codes_moved"));
    CHECK(group.tensors == 3);
}

TEST_CASE("the worst member is one of zeros that changed; dtypes of members may differ") {
    tests::memory_model a, b;
    const std::vector<float> ones(64, 1.0F), twos(64, 2.0F), zeros(64, 0.0F);
    const std::vector<std::uint16_t> halves(64, 0x3C00);  // 1
    a.add("m.0.w", dtype::f32, {2, 32}, ones);
    a.add("m.1.w", dtype::f32, {2, 32}, zeros);
    a.add("m.2.w", dtype::f32, {2, 32}, zeros);
    b.add("m.0.w", dtype::f32, {2, 32}, twos);
    b.add("m.1.w", dtype::f32, {2, 32}, zeros);
    b.add("m.2.w", dtype::f16, {2, 32}, halves);
    const auto d = diff_of({&a, &b}, {"nvfp4"}, {.groups = {"m.*"}});
    REQUIRE(d.results.size() == 1);
    const report::record r = d.results[0];
    CHECK(words(r, "worst_member") == "m.2.w");
    CHECK(is_null(r, "worst_member_nrmse"));
    CHECK(words(r, "dtype") == "F32");
    CHECK(is_null(r, "dtype_b"));
    CHECK(is_null(r, "tensor_scale_b"));
    CHECK(number(r, "changed_values") == 128);
}

TEST_CASE("findings are of single tensors, with groups too") {
    const auto norms = [](float gain) {
        tests::memory_model m;
        for (int layer = 0; layer < 2; ++layer) {
            const std::vector<float> x(64, layer == 0 ? gain : 1.0F);
            m.add("layers." + std::to_string(layer) + ".norm.weight", dtype::f32, {64}, x);
        }
        return m;
    };
    const tests::memory_model a = norms(1.5F), b = norms(1.7F), c = norms(1.9F);
    const auto alone = diff_of({&a, &b, &c}, {"mxfp8:scale=floor"});
    const auto group = diff_of({&a, &b, &c}, {"mxfp8:scale=floor"}, {.groups = {"role"}});
    REQUIRE(alone.findings.size() == 1);
    REQUIRE(group.findings.size() == 1);
    CHECK(group.findings[0].tensor == alone.findings[0].tensor);
    CHECK(group.results.size() == 2);
    CHECK(words(group.results[0], "tensor") == "norm");
}
