// SPDX-License-Identifier: Apache-2.0
// The statements of a review about made-up results, which follow from the policy.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "libmx/analysis/distributions.hpp"
#include "libmx/base/status.hpp"
#include "libmx/pages/review.hpp"
#include "libmx/pages/review_data.hpp"
#include "libmx/pages/views/words.hpp"
#include "libmx/policy/normal.hpp"
#include "libmx/report/members.hpp"
#include "tests/catch.hpp"

namespace {

using namespace mx::analysis;
using namespace mx::pages;
namespace report = mx::report;

// A result of a matrix with 64 columns and rms 1.
struct made_up {
    std::string tensor, recipe;
    double sqnr_db;
    double bits;
    double underflow = 0;
    std::string role = "weight";
    std::int64_t elements = 128;
    std::int64_t layer = -1;
    std::string file = "model";
    std::string dtype = "BF16";
    double saturated = 0;
};

report::record record_of(const made_up& m) {
    const double nrmse = std::pow(10, -m.sqnr_db / 20);
    return {{"file", m.file},
            {"tensor", m.tensor},
            {"role", m.role},
            {"dtype", m.dtype},
            {"shape",
             report::list{std::clamp<std::int64_t>(m.elements / 64, 1, 1 << 20), std::int64_t{64}}},
            {"layer", m.layer < 0 ? report::value() : report::value(m.layer)},
            {"recipe", m.recipe},
            {"elements", m.elements},
            {"rmse", nrmse},
            {"nrmse", nrmse},
            {"sqnr_db", m.sqnr_db},
            {"rms", 1.0},
            {"crest_factor", 2.0},
            {"overflow_rate", 0.0},
            {"clamp_rate", 0.0},
            {"underflow_rate", m.underflow},
            {"eligible_blocks", m.elements / 32},
            {"collapsed_block_rate", 0.0},
            {"saturated_block_rate", m.saturated},
            {"gain", 1.0},
            {"cosine", 1.0},
            {"bits_per_element", m.bits}};
}

// A document of mx analyze.
struct document {
    report::record head{
        {"schema", std::string("mx.analysis/1")},
        {"tool", report::record{{"name", std::string("mx")}, {"version", std::string("1.2.3")}}},
        {"inputs", report::list{report::record{{"path", std::string("a/model")},
                                               {"bytes", std::int64_t{7}}}}},
        {"given", report::given_record({"analyze", {}})}};
    report::record_list records;
    mutable mx::analysis::result_list results;
    report::record tail;

    explicit document(const std::vector<made_up>& all) {
        for (const made_up& m : all) records.push_back(record_of(m));
    }
    result_set set() const {
        results = results_of(records, "doc.json");
        return {"doc.json", &head, &results, &tail};
    }
};

mx::pages::review review_of(const document& d, const std::string& target = "any") {
    const result_set set = d.set();
    review_options o;
    o.judged_by.on = &mx::policy::find_target(target);
    o.made_by = "mx 9.9, test";
    return make_review({&set, 1}, o);
}

report::document page_of(const document& d) { return review_of(d).page; }

// The decision on a tensor, from the page's records.
report::record decision_on(const report::document& page, const std::string& tensor) {
    for (const report::record& r : page.results) {
        if (report::text_of(r, "tensor") == tensor) return r;
    }
    return {};
}

const report::section* section_of(const report::document& page, const std::string& heading) {
    for (const report::section& s : page.sections) {
        if (s.heading.rfind(heading, 0) == 0) return &s;
    }
    return nullptr;
}

std::string notes_of(const report::section& s) {
    std::string text;
    for (const report::note& n : s.notes) text += n.text + "\n";
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

// A weight like normally distributed data, under the recipes that the policy judges.
void add_usual(std::vector<made_up>& to, const made_up& like) {
    const std::vector<made_up> usual{{"", "mxfp8:scale=rceil", 31.4, 8.25},
                                     {"", "mxfp6:scale=even", 31, 6.25},
                                     {"", "nvfp4", 20.4, 4.5, 0.06},
                                     {"", "mxfp4:scale=even", 18.9, 4.25, 0.1}};
    for (made_up m : usual) {
        const made_up figures = m;
        m = like;
        m.recipe = figures.recipe;
        m.sqnr_db = figures.sqnr_db;
        m.bits = figures.bits;
        m.underflow = figures.underflow;
        to.push_back(m);
    }
}

const std::vector<made_up> three_widths{{"w", "mxfp4:scale=even", 18.9, 4.25, 0.1},
                                        {"w", "mxfp6:scale=even", 31, 6.25},
                                        {"w", "mxfp8:scale=rceil", 31.4, 8.25}};

}  // namespace

TEST_CASE("sizes in bytes and their ratios are said in words") {
    CHECK(bytes_text(1) == "1 byte");
    CHECK(bytes_text(999) == "999 bytes");
    CHECK(bytes_text(1530) == "1.53 kB");
    CHECK(bytes_text(90'949'000) == "90.9 MB");
    CHECK(bytes_text(999'600) == "1.00 MB");
    CHECK(size_change(100, 50) == "2.00 times smaller");
    CHECK(size_change(100, 150) == "1.50 times larger");
    CHECK(size_change(1000, 1001) == "the same size");
    CHECK(size_change(0, 0) == "the same size");
}

TEST_CASE("the first screen says what to ship, what is kept, the cost, the risks and how sure") {
    std::vector<made_up> all;
    for (const char* name : {"a.weight", "b.weight"}) add_usual(all, {name, "", 0, 0});
    add_usual(all, {"emb", "", 0, 0, 0, "embedding"});
    add_usual(all, {"norm", "", 0, 0, 0, "norm"});
    add_usual(all, {"router", "", 0, 0, 0, "router"});
    add_usual(all, {"bias", "", 0, 0, 0, "bias"});
    document d(all);
    d.tail = {{"skipped", report::list{report::record{{"file", std::string("model")},
                                                      {"tensor", std::string("position_ids")},
                                                      {"recipe", report::value()},
                                                      {"reason", std::string("integers")},
                                                      {"dtype", std::string("I64")},
                                                      {"elements", std::int64_t{32}},
                                                      {"bytes", std::int64_t{256}}}}}};
    const mx::pages::review r = review_of(d);
    const report::document& page = r.page;
    for (const char* name : {"emb", "norm", "router", "bias", "position_ids"}) {
        CAPTURE(name);
        CHECK(report::text_of(decision_on(page, name), "recipe") == "keep");
        CHECK(report::text_of(decision_on(page, name), "verdict") == "keep");
        CHECK_FALSE(report::text_of(decision_on(page, name), "reason").empty());
    }
    const report::record a = decision_on(page, "a.weight");
    CHECK(report::text_of(a, "recipe") == "mxfp8:scale=rceil");
    CHECK(report::text_of(a, "verdict") == "safe");
    CHECK(report::number_of(a, "stored_bytes") == 256.0);
    CHECK(report::number_of(a, "bytes") == 132.0);
    CHECK(report::number_of(a, "sqnr_db") == 31.4);

    const report::section& words = page.sections.front();
    CHECK(words.heading == "Verdict");
    CHECK(words.notes[0].text ==
          "mxfp8:scale=rceil for all 2 weight tensors: 264 bytes instead of 512 bytes.");
    // 4 matrices of 256 bytes and the buffer of 256 are kept, of 1792 bytes in all.
    CHECK(words.notes[1].text ==
          "Not quantized: 1 bias, 1 embedding, 1 norm, 1 other and 1 router tensors (71.43 % of "
          "the bytes); embedding in 8 bits would save another 124 bytes.");
    CHECK(says(words, "Cost: 1.79 kB to 1.54 kB, 1.16 times smaller"));
    CHECK(says(words, "Confidence: tensor error only"));
    CHECK(says(words, "Policy inference, version 2; target any"));
    // The recipes that the policy judges are those measured without --recipe.
    CHECK(section_of(page, "What to ship")->notes.back().text ==
          "mx analyze a/model --html review.html");
    CHECK(says(*section_of(page_of(document(three_widths)), "What to ship"),
               "mx analyze a/model -r mxfp4:scale=even -r mxfp6:scale=even -r "
               "mxfp8:scale=rceil --html review.html"));
    // Classes that are kept share a row, with a clause for each.
    const std::vector<report::record>& rows = section_of(page, "What to ship")->rows;
    REQUIRE(rows.size() == 2);
    CHECK(report::text_of(rows[1], "role") == "bias, embedding, norm, other, router");
    const std::vector<report::record>& kept = section_of(page, "Kept as stored")->rows;
    REQUIRE(kept.size() == 5);
    CHECK(report::text_of(kept[0], "reason") == "policy: \"Added, not multiplied.\"");
    CHECK(report::text_of(kept[1], "reason") ==
          "policy: \"Looked up, not multiplied: quantizing it saves memory, not time.\"");
    CHECK(
        report::text_of(kept[2], "reason") ==
        "policy: \"The error of a gain multiplies everything that follows, and trainings can bring "
        "gains so close together that whole blocks clamp.\"");
    CHECK(report::text_of(kept[3], "reason") == "integers: indices, masks or counts");
    CHECK(report::text_of(kept[4], "reason") ==
          "policy: \"A small error sends tokens to other experts.\"");
    CHECK(section_of(page, "Largest risks")->notes.back().text ==
          "No operand reaches a limit of the policy. The largest error is that of a.weight under "
          "mxfp8:scale=rceil: 1.03 times the squared error of normal data.");
    std::vector<std::string> headings;
    for (const report::section& s : r.first_screen) headings.push_back(s.heading);
    CHECK(headings == std::vector<std::string>{"Verdict", "What to ship", "Largest risks",
                                               "Kept as stored", "Best format per width"});
    const std::vector<report::record>& best = section_of(page, "Best format per width")->rows;
    REQUIRE(best.size() == 3);
    CHECK(report::text_of(best[0], "recipe") == "nvfp4");
    CHECK(report::text_of(best[0], "verdict") == "needs evaluation");
    CHECK(report::text_of(best[2], "verdict") == "safe");
    CHECK(r.summary ==
          "model: mxfp8:scale=rceil for 2 weight tensors; 5 tensors kept; 1.79 kB to 1.54 kB, 1.16 "
          "times smaller; worst: a.weight under mxfp8:scale=rceil has 1.03 times the squared error "
          "of "
          "normal data; tensor error only");
    const auto& totals = *report::member<report::record>(page.tail, "totals");
    CHECK(report::number_of(totals, "stored_bytes") == 1792.0);
    CHECK(report::number_of(totals, "kept_bytes") == 1280.0);
}

TEST_CASE("the table of what to ship adds up") {
    std::vector<made_up> all;
    for (int i = 0; i < 4; ++i) add_usual(all, {"w" + std::to_string(i), "", 0, 0});
    add_usual(all, {"norm", "", 0, 0, 0, "norm"});
    for (made_up& m : all) {
        if (m.tensor == "w2") m.sqnr_db -= 4;
    }
    const report::document page = page_of(document(all));
    double tensors = 0;
    for (const report::record& r : section_of(page, "What to ship")->rows) {
        tensors += report::number_of(r, "tensors").value();
    }
    CHECK(tensors == 5);
    const report::section& words = page.sections.front();
    CHECK(says(words, "mxfp8:scale=rceil for 3 of 4 weight tensors: "));
    CHECK(says(words,
               "Keep 1 of 4 weight tensors as stored (20.00 % of the bytes): no safe recipe"
               " suits it."));
    CHECK(report::text_of(section_of(page, "What to ship")->rows[1], "reason") ==
          "mxfp8:scale=rceil is ruled out: it has an SQNR 4.13 dB below that on normal data (limit "
          "3.00 dB)");
}

TEST_CASE("a projection with a large error leads the risks, whatever its size") {
    std::vector<made_up> all;
    for (int i = 0; i < 12; ++i) add_usual(all, {"w" + std::to_string(i), "", 0, 0});
    made_up planted{"down", "", 0, 0};
    planted.elements = 8 * 64;
    add_usual(all, planted);
    for (made_up& m : all) {
        if (m.tensor != "down") continue;
        m.sqnr_db -= 8;
    }
    const report::document page = page_of(document(all));
    CHECK(section_of(page, "Largest risks")->notes.front().text ==
          "down has an SQNR 8.13 dB below that on normal data (limit 3.00 dB) under "
          "mxfp8:scale=rceil: keep its stored precision.");
    CHECK(report::text_of(decision_on(page, "down"), "recipe") == "keep");
    const report::section& worst =
        *section_of(page, "10 operands with the largest error relative to normal data");
    CHECK(report::text_of(worst.rows.front(), "tensor") == "down");
}

TEST_CASE("what would be recommended and was not measured is said, with the command") {
    const mx::pages::review r = review_of(document({{"w", "mxfp4:scale=even", 18.9, 4.25, 0.1}}));
    CHECK(says(r.first_screen.front(), "mxfp4:scale=even for 1 operand: "));
    CHECK(says(r.first_screen.front(), "No recommendation for 1 weight tensor: mxfp8:scale=rceil"));
    const report::section& missing = *section_of(r.page, "Not measured");
    CHECK(missing.notes[0].text == "mxfp8:scale=rceil, needed for a decision:");
    CHECK(missing.notes[1].text == "mx analyze a/model -r mxfp8:scale=rceil");
    const report::record w = decision_on(r.page, "w");
    CHECK(*report::find(w, "recipe") == report::value());
    CHECK(report::text_of(w, "verdict") == "undecided");
    CHECK(r.summary.find("1 weight tensor undecided") != std::string::npos);
}

TEST_CASE("bits against SQNR show the mixture that the verdict recommends") {
    std::vector<made_up> all;
    add_usual(all, {"w", "", 0, 0});
    add_usual(all, {"norm", "", 0, 0, 0, "norm"});
    const report::document page = page_of(document(all));
    const report::section& s = *section_of(page, "Recipe against");
    const auto& chart = std::get<report::scatter_chart>(s.figures.front().what);
    const auto& mixture = chart.marks.back();
    CHECK(mixture.at.label == "recommended");
    // Half of the elements in 8.25 bits, the others as stored.
    CHECK(mixture.at.x == (8.25 + 16) / 2);
    CHECK(mixture.at.y.value() == Approx(31.4 + 10 * std::log10(2)));
}

TEST_CASE("a target changes what is there") {
    std::vector<made_up> all;
    add_usual(all, {"w", "", 0, 0});
    const report::document page = review_of(document(all), "mi355x").page;
    for (const report::record& r : section_of(page, "What would change")->rows) {
        CHECK(report::text_of(r, "recipe") != "nvfp4");
        CHECK(report::text_of(r, "on_target") == "native");
    }
    CHECK(report::text_of(page.head, "target") == "mi355x");
}

TEST_CASE("sizes that cannot be are refused by tensor") {
    for (const std::int64_t elements : {std::int64_t{-5}, std::int64_t{1} << 60}) {
        const document d({{"w", "mxfp4", 30, 4.25, 0, "weight", elements}});
        CHECK_THROWS_WITH(page_of(d), Catch::Matchers::Contains("w") &&
                                          Catch::Matchers::Contains("elements is not a count"));
    }
    for (const double bits : {0.0, -4.0}) {
        CHECK_THROWS_WITH(page_of(document({{"w", "mxfp4", 30, bits}})),
                          Catch::Matchers::Contains("bits_per_element is not a number of bits"));
    }
}

TEST_CASE("tensors of files that are called alike are told apart by their folders") {
    const auto names = [](const std::string& other) {
        made_up second{"w", "mxfp8:scale=rceil", 25, 8.25, 0.01};
        made_up first = second;
        first.file = "a/model";
        second.file = other;
        std::string text;
        const report::document page = page_of(document({first, second}));
        for (const report::record& r : section_of(page, "2 operands with")->rows) {
            text += report::text_of(r, "tensor") + " ";
        }
        return text;
    };
    CHECK(names("b/model") == "a/model: w b/model: w ");
    CHECK(names("b/rest") == "model: w rest: w ");
}

TEST_CASE("recipes that differ in their seed are one") {
    const std::string drawn = "mxfp4:round=stochastic,seed=";
    const document d({{"w", "mxfp4:round=stochastic", 26, 4.25}, {"w", drawn + "1", 20, 4.25}});
    const result_set set = d.set();
    const review_data e = gather({&set, 1});
    REQUIRE(e.plan.cells.size() == 1);
    REQUIRE(e.metrics.front().name == "sqnr_db");
    CHECK(e.metrics.front().values[0][0] == Approx(23));
}

TEST_CASE("the explorer holds every tensor under every recipe") {
    std::vector<made_up> all;
    for (int i = 0; i < 12; ++i) {
        all.push_back({"w" + std::to_string(i), "mxfp4:scale=even", 19.0 - i, 4.25});
        all.push_back({"w" + std::to_string(i), "mxfp6:scale=even", 30.0 + i, 6.25});
    }
    const report::document page = page_of(document(all));
    const report::explorer& x = *section_of(page, "All tensors")->all;
    CHECK(x.rows.size() == 12);
    CHECK(x.columns == std::vector<std::string>{"mxfp4:scale=even", "mxfp6:scale=even"});
    CHECK(x.classes.front() == "weight");
    CHECK(x.metrics.front().values[1][11] == 41.0f);
    CHECK(x.metrics.front().name == "sqnr_db");
    CHECK_FALSE(x.metrics.front().larger_is_worse);
}

TEST_CASE("an explorer of very many tensors keeps the worst and says so", "[slow]") {
    std::vector<made_up> all;
    for (int i = 0; i < 140'000; ++i) {
        all.push_back(
            {"w" + std::to_string(i), "mxfp8:scale=rceil", i % 7 == 0 ? 20.0 : 31.5, 8.25});
    }
    const report::document page = page_of(document(all));
    const report::section& s = *section_of(page, "All tensors");
    REQUIRE(s.all->rows.size() == 1'200'000 / s.all->metrics.size());
    CHECK(s.all->rows[0] == "w0");
    CHECK(s.all->rows[1] == "w1");
    CHECK(says(s, "worst of 140,000"));
    CHECK(std::ranges::find(s.all->rows, "w139993") != s.all->rows.end());
}

TEST_CASE("several documents are one; of a tensor under a recipe the first result counts") {
    const document a({{"w", "mxfp4:scale=even", 18.9, 4.25}});
    const document b({{"w", "mxfp4:scale=even", 2, 4.25}, {"w", "mxfp8:scale=rceil", 31, 8.25}});
    const std::vector<result_set> sets{a.set(), b.set()};
    const report::document page = make_review(sets, {}).page;
    CHECK(report::text_of(decision_on(page, "w"), "recipe") == "mxfp8:scale=rceil");
    CHECK(report::number_of(section_of(page, "Best format per width")->rows.front(), "sqnr_db")
              .value() == Approx(18.9));
    CHECK(says(page.sections.front(), "1 result is in more than one document; the first counts."));
    // The same file is listed once.
    CHECK(section_of(page, "Inputs")->rows.size() == 1);
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

    document layers({{"l.0.w", "mxfp4", 18, 4.25, 0, "weight", 128, 0},
                     {"l.1.w", "mxfp4", 22, 4.25, 0, "weight", 128, 1},
                     {"l.0.w", "mxfp4:block=1x16", 20, 4.5, 0, "weight", 128, 0},
                     {"l.1.w", "mxfp4:block=1x16", 24, 4.5, 0, "weight", 128, 1}});
    // The results of a tensor are consecutive.
    const report::document page = page_of(layers);
    CHECK(count_figures(page, "heat") == 2);
    // Two points make no line worth drawing.
    REQUIRE(page.sections.front().figures.size() == 1);
    CHECK(std::holds_alternative<report::scatter_chart>(page.sections.front().figures[0].what));
    CHECK(count_figures(page, "blocks") == 1);
}

TEST_CASE("heat maps of very many layers put several into a row") {
    std::vector<made_up> all;
    for (int i = 0; i < 100; ++i) {
        all.push_back(
            {"l." + std::to_string(i) + ".w", "mxfp4", 20.0 + i, 4.25, 0, "weight", 128, i});
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
}

TEST_CASE("the answer has the error relative to normal data beside it") {
    std::vector<made_up> all;
    for (int layer = 0; layer < 4; ++layer) {
        for (const char* module : {"attn.q", "mlp.up"}) {
            const std::string name = fmt::format("l.{}.{}.weight", layer, module);
            all.push_back({name, "mxfp8:scale=rceil", 31.5, 8.25, 0, "weight", 128, layer});
            all.push_back(
                {name, "mxfp4:scale=even", 19.0 - 4 * layer, 4.25, 0, "weight", 128, layer});
        }
        all.push_back({fmt::format("l.{}.norm.weight", layer), "mxfp4:scale=even", 5, 4.25, 0,
                       "norm", 128, layer});
    }
    const report::document page = page_of(document(all));
    REQUIRE(page.sections.front().figures.size() == 1);
    const auto& chart = std::get<report::line_chart>(page.sections.front().figures[0].what);
    // A panel per module of operands, a line per recipe.
    REQUIRE(chart.lines.size() == 4);
    CHECK(chart.lines[0].panel == "q");
    CHECK(chart.lines[3].panel == "up");
    CHECK(chart.lines[1].name == "mxfp4:scale=even");
    const double normal =
        mx::policy::figures_on_normal_data(mx::codec::parse_recipe("mxfp4:scale=even")).sqnr_db;
    REQUIRE(chart.lines[1].points.size() == 4);
    CHECK(chart.lines[1].points[2].y.value() == Approx(normal - 11));
    // The limit is drawn where it matters.
    REQUIRE(chart.levels.size() == 2);
    CHECK(chart.levels[1].at == 3);

    std::vector<made_up> counted;
    for (int i = 0; i < 6; ++i) {
        counted.push_back({fmt::format("conv_{}.w", i), "mxfp4", 18, 4.25, 0, "weight", 128, i});
    }
    const report::document convolutions = page_of(document(counted));
    const auto& dots = std::get<report::scatter_chart>(convolutions.sections[0].figures[0].what);
    CHECK(dots.rows.size() == 6);
    CHECK(dots.rows.back() == "conv_0");
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
    const mx::analysis::result_list results;
    const result_set set{"drift.json", &head, &results, &tail};
    const report::document page = make_review({&set, 1}, {}).page;
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
