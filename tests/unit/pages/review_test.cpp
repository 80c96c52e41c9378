// SPDX-License-Identifier: Apache-2.0
// What a review recommends, on made-up results whose right answers follow from the policy.
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "libmx/analysis/alarms.hpp"
#include "libmx/analysis/distributions.hpp"
#include "libmx/base/status.hpp"
#include "libmx/pages/evidence.hpp"
#include "libmx/pages/recommend.hpp"
#include "libmx/pages/review.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/report/members.hpp"
#include "tests/catch.hpp"

namespace {

using namespace mx::analysis;
using namespace mx::pages;
namespace report = mx::report;

// A result whose rms is 1 unless said otherwise.
struct made_up {
    std::string tensor, recipe;
    double sqnr_db;
    double bits;
    double saturated = 0;
    std::string role = "weight";
    std::int64_t elements = 64;
    double clamp = 0;
    std::int64_t layer = -1;
    double rms = 1;
    std::string file = "model";
    std::optional<double> collapsed = 0.0;
    std::string dtype = "BF16";
};

report::record record_of(const made_up& m) {
    const double nrmse = std::pow(10, -m.sqnr_db / 20);
    report::record r{{"file", m.file},
                     {"tensor", m.tensor},
                     {"role", m.role},
                     {"dtype", m.dtype},
                     {"layer", m.layer < 0 ? report::value() : report::value(m.layer)},
                     {"recipe", m.recipe},
                     {"elements", m.elements},
                     {"rmse", nrmse * m.rms},
                     {"nrmse", nrmse},
                     {"sqnr_db", m.sqnr_db},
                     {"rms", m.rms},
                     {"overflow_rate", m.clamp},
                     {"clamp_rate", m.clamp},
                     {"underflow_rate", 0.0},
                     {"eligible_blocks", m.elements / 32},
                     {"saturated_block_rate", m.saturated},
                     {"gain", 0.5},
                     {"cosine", 1.0},
                     {"bits_per_element", m.bits}};
    if (m.collapsed) r.emplace_back("collapsed_block_rate", *m.collapsed);
    return r;
}

// A document of mx analyze.
struct document {
    report::record head{
        {"schema", std::string("mx.analysis/1")},
        {"tool", report::record{{"name", std::string("mx")}, {"version", std::string("1.2.3")}}},
        {"inputs", report::list{report::record{{"path", std::string("a/model")},
                                               {"bytes", std::int64_t{7}}}}}};
    report::record_list records;
    mutable std::vector<result> results;
    report::record tail;

    explicit document(const std::vector<made_up>& all) {
        for (const made_up& m : all) records.push_back(record_of(m));
    }
    result_set set() const {
        results = results_of(records, "doc.json");
        return {"doc.json", &head, &results, &tail};
    }
};

report::document page_of(const document& d, double floor = default_min_sqnr_db) {
    const result_set set = d.set();
    return make_review({&set, 1}, {{floor}, "mx 9.9, test"});
}

// The recommendation for a role, as the page's records have it.
std::string chosen(const report::document& page, const std::string& role) {
    for (const report::record& r : page.results) {
        if (report::text_of(r, "role") == role) return report::text_of(r, "recipe");
    }
    return "no such class";
}

const report::section* section_of(const report::document& page, const std::string& heading) {
    for (const report::section& s : page.sections) {
        if (s.heading.rfind(heading, 0) == 0) return &s;
    }
    return nullptr;
}

std::string notes_of(const report::section& s) {
    std::string text;
    for (const std::string& n : s.notes) text += n + "\n";
    return text;
}

bool says(const report::section& s, const std::string& words) {
    return notes_of(s).find(words) != std::string::npos;
}

std::size_t count_figures(const report::document& page, const std::string& kind) {
    std::size_t n = 0;
    for (const report::section& s : page.sections) {
        for (const report::figure& f : s.figures) {
            n += f.id == kind || f.id.rfind(kind + "-", 0) == 0 ? 1u : 0u;
        }
    }
    return n;
}

candidate made(double bits, double sqnr_db, std::size_t saturating = 0) {
    candidate c;
    c.bits = bits;
    c.sqnr_db = sqnr_db;
    c.saturation.tensors = saturating;
    return c;
}

const std::vector<made_up> three_widths{
    {"w", "mxfp4", 18, 4.25}, {"w", "mxfp6", 30, 6.25}, {"w", "mxfp8", 32, 8.25}};

}  // namespace

TEST_CASE("the fewest bits above the floor are chosen") {
    const std::vector<candidate> all{made(8.25, 32), made(4.25, 18), made(6.25, 30)};
    CHECK(choose(all, {18}) == 1u);
    CHECK(choose(all, {18.001}) == 2u);
    CHECK(choose(all, {30.5}) == 0u);
    CHECK_FALSE(choose(all, {33}).has_value());
}

TEST_CASE("of equal bits the higher SQNR is chosen, of equal recipes the first") {
    CHECK(choose({made(6.25, 30), made(6.25, 31), made(6.25, 29)}, {20}) == 1u);
    CHECK(choose({made(6.25, 30), made(6.25, 30)}, {20}) == 0u);
}

TEST_CASE("a recipe that saturates a tensor is not chosen, however cheap") {
    const std::vector<candidate> all{made(4.25, 25, 1), made(8.25, 30)};
    CHECK(choose(all, {20}) == 1u);
    CHECK(choose(all, {20, true}) == 0u);
    CHECK_FALSE(choose({made(4.25, 25, 1)}, {20}).has_value());
}

TEST_CASE("the ladder names every choice, and its rungs are where the choice changes") {
    const double none = std::numeric_limits<double>::infinity();
    // The third costs more and does less than the second: no floor leads to it.
    const std::vector<candidate> all{made(4.25, 18), made(6.25, 30), made(8.25, 29),
                                     made(9, 40, 2)};
    const std::vector<rung> rungs = ladder(all);
    REQUIRE(rungs.size() == 3);
    CHECK(rungs[0].candidate == 0u);
    CHECK(rungs[1].candidate == 1u);
    CHECK_FALSE(rungs[2].candidate.has_value());
    for (const rung& r : rungs) {
        if (!r.candidate) continue;
        CHECK(choose(all, {r.up_to_db}) == r.candidate);
        CHECK(choose(all, {std::nextafter(r.up_to_db, none)}) != r.candidate);
    }
    // Without an error every floor is met.
    const std::vector<rung> exact = ladder({made(8.25, none)});
    REQUIRE(exact.size() == 1);
    CHECK(exact.front().candidate == 0u);
}

TEST_CASE("a page recommends by class, with the cost of the class") {
    std::vector<made_up> all = three_widths;
    // Half as many elements with 2 bits more: errors and bits are of all elements together.
    all.push_back({"v", "mxfp4", 12, 6.25, 0, "weight", 32});
    all.push_back({"v", "mxfp6", 24, 8.25, 0, "weight", 32, 0.03});
    all.push_back({"v", "mxfp8", 26, 10.25, 0, "weight", 32});
    all.push_back({"g", "mxfp4", 22, 4.25, 0, "gradient"});
    all.push_back({"g", "mxfp6", 30, 6.25, 0, "gradient"});
    all.push_back({"g", "mxfp8", 31, 8.25, 0, "gradient"});
    const report::document page = page_of(document(all));
    CHECK(page.title == "Quantization review of model");
    CHECK(chosen(page, "weight") == "mxfp6");
    CHECK(chosen(page, "gradient") == "mxfp4");
    const report::record weight = page.results[0];  // most elements
    CHECK(report::number_of(weight, "bits_per_element") == (64 * 6.25 + 32 * 8.25) / 96);
    const double error2 = (64 * std::pow(10, -3.0) + 32 * std::pow(10, -2.4)) / 96;
    CHECK(report::number_of(weight, "sqnr_db").value() == Approx(-10 * std::log10(error2)));
    CHECK(report::number_of(weight, "clamp_rate").value() == Approx(0.01));
    CHECK(says(page.sections.front(), "weight: mxfp6 clamps 1 % of the elements or more in 1 of"));
    const report::section& verdict = page.sections.front();
    CHECK(verdict.heading == "Verdict");
    CHECK(says(verdict, "- mxfp6 for weight.\n- mxfp4 for gradient.\n"));
    CHECK(report::text_of(page.sections[1].rows[0], "reason") ==
          "fewer bits give 15.00 dB at most (mxfp4)");
}

TEST_CASE("a class that no recipe suits stays in bf16, and the page says why") {
    const report::document low = page_of(document({{"w", "mxfp4", 18, 4.25}}));
    CHECK(chosen(low, "weight") == "bf16");
    CHECK(report::text_of(low.sections[1].rows[0], "reason") ==
          "no recipe reaches 20 dB; the best, mxfp4, has 18.00 dB");
    const report::document saturated =
        page_of(document({{"x", "mxfp8", 25, 8.25, alarming_saturation, "activation"}}));
    CHECK(chosen(saturated, "activation") == "bf16");
    CHECK(report::text_of(saturated.sections[1].rows[0], "reason") ==
          "what reaches 20 dB saturates: mxfp8 saturates 1 of 1 tensor");
    const report::section& changes = *section_of(saturated, "What would change");
    CHECK(says(changes, "mxfp8 would be recommended but for saturation, in 1 of 1 tensor"));
    CHECK(says(changes, "mx compare FILE -r mxfp8 --scale floor,even,rceil measures other rules"));
    // Just below the alarm it does not count as saturated.
    const double less = std::nextafter(alarming_saturation, 0.0);
    CHECK(chosen(page_of(document({{"x", "mxfp8", 25, 8.25, less, "activation"}})), "activation") ==
          "mxfp8");
    // Once another rule of the recipe was measured, none is looked for.
    const report::document both =
        page_of(document({{"x", "mxfp8", 25, 8.25, 1, "activation"},
                          {"x", "mxfp8:scale=even", 12, 8.25, 0, "activation"}}));
    CHECK_FALSE(says(*section_of(both, "What would change"), "--scale floor"));
}

TEST_CASE("a recipe under which blocks collapse is not recommended") {
    const auto page = [](std::optional<double> collapsed) {
        made_up w{"w", "mxfp4", 25, 4.25};
        w.collapsed = collapsed;
        return page_of(document({w, {"w", "mxfp8", 30, 8.25}}));
    };
    const report::document vetoed = page(alarming_collapse);
    CHECK(chosen(vetoed, "weight") == "mxfp8");
    CHECK(report::text_of(vetoed.sections[1].rows[0], "reason") ==
          "mxfp4 has fewer bits but collapses 1 of 1 tensor");
    CHECK(
        says(*section_of(vetoed, "What would change"),
             "mxfp4 would be recommended but for collapse, in 1 of 1 tensor (worst w, 10.00 % of"));
    CHECK(chosen(page(std::nextafter(alarming_collapse, 0.0)), "weight") == "mxfp4");
    // What was not measured vetoes nothing, and the page says that it was not.
    const report::document unknown = page(std::nullopt);
    CHECK(chosen(unknown, "weight") == "mxfp4");
    CHECK(says(unknown.sections[1], "Collapse was not measured for 1 tensor"));
    CHECK_FALSE(says(vetoed.sections[1], "Collapse was not measured"));
}

TEST_CASE("norms, biases and routers keep the precision they are stored in") {
    std::vector<made_up> all = three_widths;
    for (const char* role : {"norm", "bias", "router"}) {
        made_up m{role, "mxfp4", 60, 4.25, 0, role, 32};
        m.dtype = m.role == "router" ? "BF16" : "F32";
        all.push_back(m);
    }
    const report::document page = page_of(document(all));
    for (const char* role : {"norm", "bias", "router"}) CHECK(chosen(page, role) == "stored");
    const report::record norm = page.results[2];
    REQUIRE(report::text_of(norm, "role") == "norm");
    CHECK(report::number_of(norm, "bits_per_element") == 32.0);
    CHECK(*report::find(norm, "sqnr_db") == report::value());
    CHECK(*report::find(norm, "keeps_precision") == report::value(true));
    CHECK(report::text_of(page.sections[1].rows[2], "reason") == "kept as stored, F32");
    const report::section& verdict = page.sections.front();
    CHECK(says(verdict,
               "- mxfp6 for weight.\n- No recipe for bias, norm and router: keep the stored "
               "precision.\n"));
    // 64 elements at 6.25 bits, 64 at 32 and 32 at 16.
    CHECK(says(verdict, "Cost: 18.500 bits per element over 160 elements"));
    CHECK(says(verdict, "60.00 % of the elements are not quantized"));
    // No floor leads below that.
    for (const report::record& r : section_of(page, "Which floor")->rows) {
        CHECK(report::text_of(r, "role") == "weight");
    }
    for (const report::record& r : section_of(page, "Tensors, worst")->rows) {
        CHECK(report::text_of(r, "role") == "weight");
    }
}

TEST_CASE("without a recipe, values of fewer bits than bf16 or of other types stay as stored") {
    const auto with = [](const char* dtype) {
        made_up w{"w", "mxfp4", 18, 4.25};
        w.dtype = dtype;
        return page_of(document({w}));
    };
    CHECK(chosen(with("BF16"), "weight") == "bf16");
    CHECK(chosen(with("F32"), "weight") == "bf16");
    CHECK(chosen(with("F16"), "weight") == "stored");
    const report::document eight = with("F8_E4M3");
    CHECK(chosen(eight, "weight") == "stored");
    CHECK(report::number_of(eight.results[0], "bits_per_element") == 8.0);
}

TEST_CASE("the page says what other floors would lead to, and those floors do") {
    const document d(three_widths);
    const report::document page = page_of(d);
    const report::section& s = *section_of(page, "What would change");
    const std::vector<report::record>& rows = section_of(page, "Which floor")->rows;
    REQUIRE(rows.size() == 4);
    CHECK(report::text_of(rows[0], "floor") == "up to 18.00");
    CHECK(report::text_of(rows[1], "floor") == "above 18.00, up to 30.00");
    CHECK(report::text_of(rows[1], "now") == "recommended");
    CHECK(report::text_of(rows[3], "recipe") == "bf16");
    CHECK(says(s, "weight: mxfp4 misses the floor by 2.00 dB: --min-sqnr 18.00 would take it"));
    CHECK(says(s, "mxfp6 clears the floor by 10.00 dB; above 30.00 dB mxfp8 takes over"));
    CHECK(chosen(page_of(d, 18), "weight") == "mxfp4");
    CHECK(chosen(page_of(d, 30.01), "weight") == "mxfp8");
    CHECK(chosen(page_of(d, 32.01), "weight") == "bf16");
}

TEST_CASE("a floor is rounded down, so that it is met") {
    const document d({{"w", "mxfp4", 18.479, 4.25}, {"w", "mxfp6", 30, 6.25}});
    CHECK(says(*section_of(page_of(d), "What would change"), "--min-sqnr 18.47 "));
    CHECK(chosen(page_of(d, 18.47), "weight") == "mxfp4");
    CHECK(chosen(page_of(d, 18.48), "weight") == "mxfp6");
}

TEST_CASE("recipes of as many bits that are close are too close to call") {
    const document d({{"w", "mxfp4:scale=even", 25, 4.25},
                      {"w", "mxfp4", 25 - 0.49, 4.25},
                      {"w", "mxfp4:scale=rceil", 25 - 0.51, 4.25}});
    const report::document page = page_of(d);
    const report::section& s = *section_of(page, "What would change");
    CHECK(says(s, "too close to call: mxfp4 (0.49 dB less)."));
    CHECK_FALSE(says(s, "and mxfp4:scale=rceil"));
}

TEST_CASE("differences that two decimals do not show are not given as numbers") {
    const document d({{"w", "mxfp4", 25.001, 4.25},
                      {"w", "mxfp4:scale=even", 25.0, 4.25},
                      {"w", "mxfp6", 25.01, 4.25001},
                      {"w", "mxfp8", 33, 8.25}});
    const std::string words = notes_of(*section_of(page_of(d), "What would change"));
    CHECK(words.find("mxfp4:scale=even (as good)") != std::string::npos);
    CHECK(words.find("0.00") == std::string::npos);
    CHECK(words.find("for as many bits") != std::string::npos);
    CHECK(notes_of(*section_of(page_of(d, 25.0), "What would change")).find("0.00") ==
          std::string::npos);
}

TEST_CASE("a recipe of as many bits as bf16 is not recommended") {
    const document d({{"w", "mxfp8", 40, 16}, {"w", "mxfp4", 15, 12}});
    const report::document page = page_of(d);
    CHECK(chosen(page, "weight") == "bf16");
    CHECK(report::text_of(section_of(page, "What to use")->rows.front(), "reason") ==
          "what reaches 20 dB takes no fewer bits than bf16");
}

TEST_CASE("large values of one tensor do not hide the errors of the others") {
    constexpr double large = 1e5;
    const document d({{"mask", "mxfp4", 40, 4.25, 0, "weight", 64, 0, -1, large},
                      {"w", "mxfp4", 12, 4.25, 0, "weight", 64},
                      {"mask", "mxfp8", 40, 8.25, 0, "weight", 64, 0, -1, large},
                      {"w", "mxfp8", 30, 8.25, 0, "weight", 64}});
    const report::document page = page_of(d);
    CHECK(chosen(page, "weight") == "mxfp8");
    // Half the elements at 40 dB and half at 30 dB.
    const double error = (std::pow(10, -4.0) + std::pow(10, -3.0)) / 2;
    CHECK(report::number_of(page.results.front(), "sqnr_db").value() ==
          Approx(-10 * std::log10(error)));
}

TEST_CASE("sizes that cannot be are refused by tensor") {
    for (const std::int64_t elements : {std::int64_t{-5}, std::int64_t{1} << 60}) {
        const document d({{"w", "mxfp4", 30, 4.25, 0, "weight", elements}});
        CHECK_THROWS_WITH(page_of(d), Catch::Matchers::Contains("w") &&
                                          Catch::Matchers::Contains("elements is no count"));
    }
    for (const double bits : {0.0, -4.0}) {
        CHECK_THROWS_WITH(page_of(document({{"w", "mxfp4", 30, bits}})),
                          Catch::Matchers::Contains("bits_per_element is no number of bits"));
    }
}

TEST_CASE("tensors of files that are called alike are told apart by their folders") {
    const auto names = [](const std::string& other) {
        made_up second{"w", "mxfp4", 25, 4.25};
        made_up first = second;
        first.file = "a/model";
        second.file = other;
        std::string text;
        const report::document page = page_of(document({first, second}));
        for (const report::record& r : section_of(page, "Tensors, worst")->rows) {
            text += report::text_of(r, "tensor") + " ";
        }
        return text;
    };
    CHECK(names("b/model") == "a/model: w b/model: w ");
    CHECK(names("b/rest") == "model: w rest: w ");
}

TEST_CASE("classes come by their number of elements") {
    const document d({{"b", "mxfp8", 30, 8.25, 0, "bias", 64},
                      {"w", "mxfp8", 30, 8.25, 0, "weight", 4096},
                      {"n", "mxfp8", 30, 8.25, 0, "norm", 128}});
    const report::document page = page_of(d);
    std::string order;
    for (const report::record& r : page.results) order += report::text_of(r, "role") + " ";
    CHECK(order == "weight norm bias ");
}

TEST_CASE("recipes that differ in their seed are one") {
    const std::string drawn = "mxfp4:round=stochastic,seed=";
    const document d({{"w", "mxfp4:round=stochastic", 26, 4.25}, {"w", drawn + "1", 20, 4.25}});
    const result_set set = d.set();
    const evidence e = gather({&set, 1});
    REQUIRE(e.plan.cells.size() == 1);
    REQUIRE(e.metrics.front().name == "sqnr_db");
    CHECK(e.metrics.front().values[0][0] == Approx(23));
    CHECK(report::number_of(page_of(d).results[0], "sqnr_db").value() == Approx(23));
}

TEST_CASE("the worst tensors are named under what is recommended for their class") {
    std::vector<made_up> all;
    for (int i = 0; i < 12; ++i) {
        all.push_back({"w" + std::to_string(i), "mxfp4", 19.0 - i, 4.25});
        all.push_back({"w" + std::to_string(i), "mxfp6", 30.0 + i, 6.25});
    }
    const report::document page = page_of(document(all));
    const report::section& s = *section_of(page, "The worst 10 tensors");
    REQUIRE(s.rows.size() == 10);
    CHECK(report::text_of(s.rows[0], "tensor") == "w0");
    CHECK(report::text_of(s.rows[0], "recipe") == "mxfp6");
    const report::explorer& x = *section_of(page, "All tensors")->all;
    CHECK(x.rows.size() == 12);
    CHECK(x.columns == std::vector<std::string>{"mxfp4", "mxfp6"});
    CHECK(x.classes.front() == "weight");
    CHECK(x.metrics.front().values[1][11] == 41.0f);
    CHECK(x.metrics.front().name == "sqnr_db");
    CHECK_FALSE(x.metrics.front().larger_is_worse);
}

TEST_CASE("an explorer of very many tensors keeps the worst and says so") {
    std::vector<made_up> all;
    for (int i = 0; i < 140'000; ++i) {
        all.push_back({"w" + std::to_string(i), "mxfp6", i % 7 == 0 ? 21.0 : 40.0, 6.25});
    }
    const report::document page = page_of(document(all));
    const report::section& s = *section_of(page, "All tensors");
    REQUIRE(s.all->rows.size() == 1'200'000 / s.all->metrics.size());
    CHECK(s.all->rows[0] == "w0");
    CHECK(says(s, "of 140,000"));
}

TEST_CASE("several documents are one; of a tensor under a recipe the first result counts") {
    const document a({{"w", "mxfp4", 18, 4.25}});
    const document b({{"w", "mxfp4", 25, 4.25}, {"w", "mxfp6", 30, 6.25}});
    const std::vector<result_set> sets{a.set(), b.set()};
    const report::document page = make_review(sets, {});
    CHECK(chosen(page, "weight") == "mxfp6");
    CHECK(says(page.sections[1], "1 result is in more than one document; the first counts."));
    // The same file is listed once.
    CHECK(section_of(page, inputs_heading)->rows.size() == 1);
}

TEST_CASE("tensors that were not measured under every recipe do not decide") {
    const document d({{"w", "mxfp4", 18, 4.25}, {"w", "mxfp6", 30, 6.25}, {"v", "mxfp4", 1, 4.25}});
    const report::document page = page_of(d);
    CHECK(chosen(page, "weight") == "mxfp6");
    CHECK(says(page.sections[1], "1 tensor was measured under some of the recipes only"));
    const report::document none =
        page_of(document({{"w", "mxfp4", 18, 4.25}, {"v", "mxfp6", 30, 6.25}}));
    CHECK(report::text_of(none.sections[1].rows[0], "recipe") == "undecided");
    const report::record undecided = none.results[0];
    CHECK(*report::find(undecided, "recipe") == report::value());
}

TEST_CASE("a page draws what the data allow and says what would provide the rest") {
    const report::document bare = page_of(document(three_widths));
    CHECK(count_figures(bare, "bits") == 1);
    CHECK(count_figures(bare, "heat") == 0);
    CHECK(count_figures(bare, "parts") == 0);
    CHECK(says(*section_of(bare, "Recipe against"), "--decompose"));
    CHECK(says(*section_of(bare, "Recipe against"), "--block"));
    CHECK(says(*section_of(bare, "Blocks, codes"), "--histograms"));
    CHECK(section_of(bare, "Norm gains") == nullptr);
    CHECK(section_of(bare, "From dump") == nullptr);

    document layers({{"l.0.w", "mxfp4", 18, 4.25, 0, "weight", 64, 0, 0},
                     {"l.1.w", "mxfp4", 22, 4.25, 0, "weight", 64, 0, 1},
                     {"l.0.w", "mxfp4:block=1x16", 20, 4.5, 0, "weight", 64, 0, 0},
                     {"l.1.w", "mxfp4:block=1x16", 24, 4.5, 0, "weight", 64, 0, 1}});
    // Of a tensor, results follow one another.
    const report::document page = page_of(layers);
    CHECK(count_figures(page, "heat") == 2);
    // Two points make no line worth drawing.
    CHECK(count_figures(page, "lines") == 0);
    CHECK(count_figures(page, "blocks") == 1);
}

TEST_CASE("heat maps of very many layers put several into a row") {
    std::vector<made_up> all;
    for (int i = 0; i < 100; ++i) {
        all.push_back(
            {"l." + std::to_string(i) + ".w", "mxfp4", 20.0 + i, 4.25, 0, "weight", 64, 0, i});
    }
    const report::document page = page_of(document(all));
    int seen = 0;
    for (const report::section& s : page.sections) {
        for (const report::figure& f : s.figures) {
            if (f.metric != "sqnr_db" || f.id.rfind("heat", 0) != 0) continue;
            ++seen;
            const auto& h = std::get<report::heat_map>(f.what);
            REQUIRE(h.rows.size() == 34);
            CHECK(h.rows[0] == "layers 0 to 2");
            CHECK(h.rows[33] == "layer 99");
            // The worst of the row; the mean is under the pointer.
            CHECK(h.cells[0][0].value() == Approx(20.0));
            CHECK(h.notes[0][0] == "worst of 3 tensors; mean 21, 20 to 22");
        }
    }
    CHECK(seen == 1);
    CHECK(count_figures(page, "lines") == 2);
}

TEST_CASE("series of mx diff become lines over steps") {
    report::list series;
    for (const double offset : {0.0, 0.2}) {
        series.emplace_back(report::record{
            {"tensor", std::string("n")},
            {"role", std::string("norm")},
            {"recipe", std::string("mxfp8")},
            {"clamp_zone_rate", report::list{0.1 + offset, 0.2 + offset, report::value()}}});
    }
    const report::record head{
        {"schema", std::string("mx.diff/1")},
        {"labels", report::list{std::string("10"), std::string("20"), std::string("40")}},
        {"steps", report::list{std::int64_t{10}, std::int64_t{20}, std::int64_t{40}}}};
    const report::record tail{{"series", std::move(series)}};
    const std::vector<result> results;
    const result_set set{"drift.json", &head, &results, &tail};
    const report::document page = make_review({&set, 1}, {});
    const report::section& s = *section_of(page, "From dump to dump");
    REQUIRE(s.figures.size() == 1);
    const auto& chart = std::get<report::line_chart>(s.figures[0].what);
    REQUIRE(chart.lines.size() == 1);
    CHECK(chart.lines[0].name == "norm, mxfp8");
    CHECK(chart.lines[0].points[1].x == 20);
    CHECK(chart.lines[0].points[1].y.value() == Approx(0.3));
    CHECK(chart.lines[0].points[1].low.value() == Approx(0.2));
    CHECK(chart.lines[0].points[1].high.value() == Approx(0.4));
    CHECK_FALSE(chart.lines[0].points[2].y.has_value());
    CHECK(section_of(page, "Verdict") == nullptr);
}

TEST_CASE("documents that a review is not made from are refused by name") {
    document d(three_widths);
    d.head[0].second = std::string("mx.bench/1");
    CHECK_THROWS_WITH(page_of(d), Catch::Matchers::Contains("mx.bench/1") &&
                                      Catch::Matchers::Contains("doc.json"));
    CHECK_THROWS_WITH(page_of(document({{"w", "mxfp4\n", 1, 1}})),
                      Catch::Matchers::Contains("doc.json"));
}

TEST_CASE("histograms of several tensors are added up, and norms keep their own") {
    const std::vector<mx::codec::recipe> recipes =
        mx::codec::parse_recipes({"mxfp4", "mxfp4:scale=even", "mxfp4:block=1x16"});
    distributions all(recipes);
    mx::metrics::histograms h;
    h.codes[3] = 5;
    h.amax_mantissa[31] = 2;
    h.spread[0] = 2;
    mx::metrics::totals t;
    t.element_bits = 4;
    t.distribution = &h;
    mx::io::tensor_info info;
    info.file = "f";
    info.name = "n1";
    for (std::size_t r = 0; r < recipes.size(); ++r) all.add(info, "norm", r, t);
    info.name = "n2";
    all.add(info, "norm", 0, t);
    const report::record m = all.members();
    const auto& sums = std::get<report::list>(*report::find(m, "sums"));
    REQUIRE(sums.size() == 3);
    const auto& first = std::get<report::record>(sums[0]);
    CHECK(report::number_of(first, "tensors") == 2.0);
    CHECK(report::number_of(std::get<report::list>(*report::find(first, "code_histogram"))[3]) ==
          10.0);
    // Once per way to cut blocks: not again under another scale rule.
    const auto& norms = std::get<report::list>(*report::find(m, "norms"));
    REQUIRE(norms.size() == 3);
    CHECK(report::text_of(std::get<report::record>(norms[1]), "recipe") == "mxfp4:block=1x16");
    CHECK(report::text_of(std::get<report::record>(norms[2]), "tensor") == "n2");
    CHECK(report::number_of(std::get<report::record>(norms[0]), "spread_p50") == 1.0);
}
