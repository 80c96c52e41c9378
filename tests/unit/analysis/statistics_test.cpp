// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/base/status.hpp"
#include "libmx/io/memory_tensor.hpp"
#include "tests/catch.hpp"

namespace {

using mx::analysis::record_of;
using mx::analysis::statistics;

std::vector<float> numbers(std::size_t count, float scale) {
    std::vector<float> x;
    for (std::size_t i = 0; i < count; ++i) {
        x.push_back(scale * std::sin(static_cast<float>(i * i + 1)));
    }
    return x;
}

statistics seen(const mx::codec::recipe& r, const std::vector<float>& x) {
    const auto file = mx::io::memory_tensor(x.data(), mx::tensor::dtype::f32, {x.size() / 32, 32},
                                            {}, "layers.2.mlp.up.weight");
    statistics s(r, "layers.2.mlp.up.weight");
    s.update({file.get(), 0}, {});
    return s;
}

}  // namespace

TEST_CASE("statistics of one array are its analysis") {
    const std::vector<float> x = numbers(512, 3);
    const auto file = mx::io::memory_tensor(x.data(), mx::tensor::dtype::f32, {16, 32}, {},
                                            "layers.2.mlp.up.weight");
    for (const char* text : {"mxfp8:scale=floor", "nvfp4", "mxfp4:offset=fp16"}) {
        mx::analysis::analysis_request request;
        request.recipes = {mx::codec::parse_recipe(text)};
        const auto a = mx::analysis::analyze({{file.get(), 0}}, request, {});
        CHECK(record_of(seen(request.recipes.front(), x).figures()) ==
              record_of(a.results.front()));
    }
}

TEST_CASE("statistics under several recipes in one pass are those of each recipe") {
    const std::vector<float> x = numbers(512, 3);
    std::vector<statistics> all;
    for (const char* text : {"mxfp8", "nvfp4", "mxfp4:round=stochastic", "mxfp4:dialect=torchao"}) {
        all.emplace_back(mx::codec::parse_recipe(text), "layers.2.mlp.up.weight");
    }
    std::vector<statistics*> places;
    for (statistics& s : all) places.push_back(&s);
    const auto file = mx::io::memory_tensor(x.data(), mx::tensor::dtype::f32, {16, 32}, {},
                                            "layers.2.mlp.up.weight");
    statistics::update(places, {file.get(), 0}, {});
    for (const statistics& s : all) {
        CHECK(record_of(s.figures()) == record_of(seen(s.recipe(), x).figures()));
    }
    // A recipe that does not fit: none of them has added anything.
    statistics columns(mx::codec::parse_recipe("mxfp8:axis=3"), "w"), blocks(all[0].recipe(), "w");
    statistics* const both[] = {&blocks, &columns};
    const auto row = mx::io::memory_tensor(x.data(), mx::tensor::dtype::f32, {32}, {}, "w");
    CHECK_THROWS_AS(statistics::update(both, {row.get(), 0}, {}), mx::base::error);
    CHECK(blocks.figures().elements == 0);
}

TEST_CASE("statistics merge to the same figures as lists of numbers") {
    const auto r = mx::codec::parse_recipe("mxfp4:scale=even");
    const std::vector<statistics> parts{seen(r, numbers(64, 1e-20F)), seen(r, numbers(512, 1)),
                                        seen(r, numbers(96, 1e18F)), statistics(r, "")};
    statistics whole(r, "w"), backwards(r, "w");
    for (const statistics& s : parts) whole.merge(s);
    for (std::size_t i = parts.size(); i-- > 0;) backwards.merge(parts[i]);
    CHECK(record_of(whole.figures()) == record_of(backwards.figures()));
    std::vector<double> sums = parts.front().sums(), maxima = parts.front().maxima();
    for (std::size_t p = 1; p < parts.size(); ++p) {
        const std::vector<double> s = parts[p].sums(), m = parts[p].maxima();
        for (std::size_t i = 0; i < s.size(); ++i) sums[i] += s[i];
        for (std::size_t i = 0; i < m.size(); ++i) maxima[i] = std::max(maxima[i], m[i]);
    }
    CHECK(record_of(statistics::with_numbers(r, "w", sums, maxima).figures()) ==
          record_of(whole.figures()));
}

TEST_CASE("statistics refuse what they are not of") {
    const auto r = mx::codec::parse_recipe("mxfp8");
    statistics s(r, "w");
    CHECK_THROWS_AS(s.merge(statistics(mx::codec::parse_recipe("mxfp4"), "w")), mx::base::error);
    std::vector<double> sums = s.sums();
    sums[2] = 0.5;
    CHECK_THROWS_AS(statistics::with_numbers(r, "w", sums, s.maxima()), mx::base::error);
    sums[2] = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_AS(statistics::with_numbers(r, "w", sums, s.maxima()), mx::base::error);
    CHECK_THROWS_AS(statistics::with_numbers(r, "w", s.sums(), {}), mx::base::error);
    const float one = 1;
    const auto scalar = mx::io::memory_tensor(&one, mx::tensor::dtype::f32, {1}, {}, "w");
    CHECK_THROWS_AS(
        statistics(mx::codec::parse_recipe("mxfp8:axis=3"), "w").update({scalar.get(), 0}, {}),
        mx::base::error);
}
