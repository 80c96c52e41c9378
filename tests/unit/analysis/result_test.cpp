// SPDX-License-Identifier: Apache-2.0
// Results of a run and those that are read back from its JSON are the same.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/analysis/result.hpp"
#include "libmx/report/json_reader.hpp"
#include "libmx/report/writers.hpp"
#include "tests/catch.hpp"
#include "tests/memory_model.hpp"

using namespace mx;

namespace {

analysis::analysis analyzed(bool decompose, bool phases) {
    tests::memory_model model;
    std::vector<float> x(2 * 64);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i)) * 3;
    model.add("layers.3.w", tensor::dtype::f32, {2, 64}, x);
    x[5] = std::numeric_limits<float>::quiet_NaN();
    model.add("poisoned", tensor::dtype::f32, {2, 64}, x);
    model.add("zeros", tensor::dtype::f32, {64}, std::vector<float>(64));
    model.add("empty", tensor::dtype::f32, {0, 32}, std::vector<float>());
    analysis::analysis_request request;
    for (const char* r : {"mxfp4", "nvfp4", "mxfp6:dialect=torchao", "mxfp8:scale=rceil"}) {
        request.recipes.push_back(codec::parse_recipe(r));
    }
    request.decompose = decompose;
    if (phases) request.factors = {1.0F, 1.5F};
    return analysis::analyze(model.all(), request, {});
}

report::record_list read_back(report::record_list records) {
    report::document d;
    d.head = {{"schema", std::string("mx.analysis/1")}};
    d.results = std::move(records);
    std::string text;
    report::write_json(d, {}, [&](std::string_view part) { text += part; });
    return std::move(report::read_results(text, "r.json").results);
}

// The error for a file with one result that contains `member`.
std::string refusal(const char* name, const report::value& v) {
    report::record r{{"tensor", std::string("w")}, {"recipe", std::string("mxfp4")}};
    for (auto& [known, old] : r) {
        if (known == name) old = v;
    }
    if (report::find(r, name) == nullptr) r.emplace_back(name, v);
    try {
        analysis::result_reader("r.json").read(r);
    } catch (const base::error& e) {
        return e.what();
    }
    return {};
}

}  // namespace

TEST_CASE("results are the same in memory and read back from JSON") {
    for (const bool decompose : {false, true}) {
        for (const bool phases : {false, true}) {
            analysis::analysis a = analyzed(decompose, phases);
            REQUIRE(a.results.size() >= 16);
            const auto again = analysis::results_of(read_back(records_of(a.results)), "r.json");
            REQUIRE(again.size() == a.results.size());
            for (std::size_t i = 0; i < again.size(); ++i) {
                INFO(a.results[i].of->tensor << " " << a.results[i].under->name);
                CHECK(record_of(again[i]) == record_of(a.results[i]));
                CHECK(*again[i].of == *a.results[i].of);
                CHECK(again[i].under->recipe == a.results[i].under->recipe);
                CHECK(again[i].phase == a.results[i].phase);
                CHECK(again[i].counted() == a.results[i].counted());
                CHECK(again[i].decomposed == decompose);
            }
            // The results of a tensor share its description.
            CHECK(again[0].of == again[1].of);
            CHECK(again.front().of != again[again.size() - 1].of);
            CHECK(again[0].of->layer == 3);
        }
    }
}

TEST_CASE("what a file lacks is undefined, and counts are 0") {
    const analysis::result r = analysis::result_reader("r.json").read(
        {{"recipe", std::string("mxfp8")}, {"rmse", 0.5}, {"of another tool", true}});
    CHECK(r.rmse == 0.5);
    CHECK(std::isnan(r.sqnr_db));
    CHECK(std::isnan(r.clamp_error_share));
    CHECK(r.elements == 0);
    CHECK(r.of->tensor.empty());
    CHECK_FALSE(r.phase);
    CHECK_FALSE(r.decomposed);
    CHECK(r.more.empty());
}

TEST_CASE("results that cannot be are refused by file and tensor") {
    for (const double n : {-1.0, 0.5, 1e17}) {
        const std::string said = refusal("elements", n);
        CHECK(said.find("r.json") != std::string::npos);
        CHECK(said.find("'w'") != std::string::npos);
        CHECK(said.find("elements is not a count") != std::string::npos);
    }
    CHECK(refusal("phase", -1.0).find("phase is not a count") != std::string::npos);
    for (const double n : {-1.0, 1e300}) {
        const std::string said = refusal("bits_per_element", n);
        CHECK(said.find("bits_per_element is not a number of bits") != std::string::npos);
    }
    CHECK(refusal("recipe", std::string("mxfp5")).find("mxfp5") != std::string::npos);
    CHECK(refusal("recipe", std::string("mxfp4:scale=floor")).find("not in canonical spelling") !=
          std::string::npos);
}
