// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "libmx/api/mx/mx.hpp"
#include "libmx/policy/figures.hpp"
#include "libmx/report/record.hpp"
#include "libmx/studies/show/scale_family.hpp"
#include "libmx/studies/show/tensor_view.hpp"
#include "tests/catch.hpp"

using namespace mx;

namespace {

// Normal values in several binades, some zeros, tiny and large ones.
std::vector<float> varied(std::size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> x(n);
    for (std::size_t i = 0; i < n; ++i) {
        x[i] = std::ldexp(normal(random), static_cast<int>(i / 40 % 7) - 3);
        if (i % 13 == 0) x[i] = 0;
        if (i % 17 == 0) x[i] *= 0x1p-9F;
        if (i % 97 == 0) x[i] *= 30;
    }
    return x;
}

show::show_request asking(const std::string& recipe, std::size_t worst = 5) {
    show::show_request r;
    r.recipes = {parse_recipe(recipe)};
    r.worst = worst;
    return r;
}

show::tensor_view shown(const view& x, const show::show_request& r, int threads = 1) {
    engine::run_control control;
    control.threads = threads;
    return show::view_tensor(x.ref(), r, control);
}

std::uint64_t sum(const std::vector<show::region>& of, std::uint64_t show::region::*member) {
    std::uint64_t n = 0;
    for (const show::region& r : of) n += r.*member;
    return n;
}

std::string message_of(const view& x, const show::show_request& r) {
    try {
        shown(x, r);
    } catch (const error& e) {
        return e.what();
    }
    return "no error";
}

bool same_counts(const block::block_stats& a, const block::block_stats& b) {
    return a.count.clamp == b.count.clamp && a.count.underflow == b.count.underflow &&
           a.count.poisoned == b.count.poisoned && a.sum.error2 == b.sum.error2 &&
           a.scale_code == b.scale_code;
}

const std::vector<std::string> recipes{"mxfp8",
                                       "mxfp4:scale=even",
                                       "mxfp6",
                                       "mxint8:int_min=full",
                                       "mxint4:offset=fp16",
                                       "nvfp4",
                                       "nvfp4:four_over_six=mse",
                                       "nvfp4:dialect=te",
                                       "fp8_1x128",
                                       "mxfp4:block=16x16",
                                       "mxfp8:block=32x1",
                                       "mxfp8:axis=0",
                                       "mxfp4:axis=flat",
                                       "mxfp4:transform=hadamard",
                                       "mxfp4:round=stochastic,seed=3",
                                       "mxfp8:dialect=microxcaling",
                                       "mxfp4:dialect=fbgemm,round=stochastic,seed=2",
                                       "mxfp8:dialect=systems-scaling"};

}  // namespace

TEST_CASE("cells and bands add up to the tensor, and blocks hold the codes that quantize writes") {
    const std::vector<float> x = varied(3 * 20 * 70, 1);
    const view v = view(x.data(), dtype::f32, {3, 20, 70}).named("w");
    for (const std::string& text : recipes) {
        CAPTURE(text);
        const recipe r = parse_recipe(text);
        const show::tensor_view t = shown(v, asking(text));
        const row figures = measure(v, r);
        for (const auto* part : {&t.cells, &t.bands}) {
            const auto elements = sum(*part, &show::region::elements);
            CHECK(elements == x.size());
            CHECK(sum(*part, &show::region::blocks) == t.geometry.grid.blocks());
            const auto of = static_cast<double>(elements);
            const auto clamp = static_cast<double>(sum(*part, &show::region::clamp));
            const auto underflow = static_cast<double>(sum(*part, &show::region::underflow));
            CHECK(clamp / of == figures.clamp_rate);
            CHECK(underflow / of == figures.underflow_rate);
            double error2 = 0;
            for (const show::region& c : *part) error2 += c.error2;
            CHECK(std::sqrt(error2 / of) == Approx(figures.rmse).epsilon(1e-12));
        }
        CHECK(t.results.front().rmse == figures.rmse);
        const bool packs = !codec::bumps_positions(r);
        const blocks q = packs ? quantize(v, r) : blocks();
        REQUIRE(t.blocks.size() == 5);
        for (const show::block_view& b : t.blocks) {
            std::uint32_t clamped = 0, underflow = 0;
            for (const show::element& e : b.elements) {
                if (packs) CHECK(int{e.code} == int{q.codes()[e.index]});
                CHECK(e.stored == x[e.index]);
                clamped += e.clamped;
                underflow += e.underflow;
            }
            CHECK(b.elements.size() == b.size);
            CHECK(clamped == b.stats.count.clamp);
            CHECK(underflow == b.stats.count.underflow);
            if (packs && codec::scales_have_codes(r)) {
                CHECK(int{b.stats.scale_code} == int{q.scale_codes()[b.index]});
            }
            CHECK(same_counts(b.rules.front().stats, b.stats));
        }
    }
}

TEST_CASE("what another rule makes of a block is what it makes of it as the recipe's rule") {
    const std::vector<float> x = varied(24 * 64, 2);
    const view v = view(x, 24, 64).named("w");
    for (const char* text : {"mxfp4", "mxfp8:offset=fp16", "nvfp4", "fp8_1x128:block=1x16",
                             "mxfp4:round=stochastic,seed=7", "mxfp4:transform=hadamard"}) {
        const show::tensor_view t = shown(v, asking(text, 3));
        REQUIRE(t.family.size() > 1);
        for (std::size_t i = 1; i < t.family.size(); ++i) {
            CAPTURE(codec::to_string(t.family[i]));
            show::show_request other = asking(codec::to_string(t.family[i]));
            for (const show::block_view& b : t.blocks) {
                other.block = b.index;
                const show::tensor_view alone = shown(v, other);
                CHECK(same_counts(b.rules[i].stats, alone.blocks.front().stats));
                CHECK(b.rules[i].scale == alone.blocks.front().scale);
                CHECK(t.results[i].sqnr_db == alone.results.front().sqnr_db);
            }
        }
    }
}

TEST_CASE("a damaged block leads, and results do not depend on threads") {
    std::vector<float> x = varied(300 * 64, 3);
    for (std::size_t i = 0; i < 32; ++i) x[117 * 64 + 32 + i] = i == 5 ? 768.0F : 30.0F;
    const float inf = std::numeric_limits<float>::infinity();
    x[40 * 64] = std::nanf("");
    x[41 * 64 + 1] = -inf;
    const view v = view(x, 300, 64).named("w");
    const show::tensor_view t = shown(v, asking("mxfp4", 4));
    // Blocks with a NaN or Inf lose every finite element; the next one has the largest error beyond
    // that of normal data.
    REQUIRE(t.blocks.size() == 4);
    CHECK(t.blocks[0].index == 80);
    CHECK(t.blocks[1].index == 82);
    CHECK(t.blocks[2].index == 235);
    CHECK(t.blocks[2].of.underflow == 31);
    CHECK(t.blocks[2].first == std::vector<std::uint64_t>{117, 32});
    CHECK(t.blocks[2].last == std::vector<std::uint64_t>{117, 63});
    CHECK(t.blocks[0].of.poisoned == 31);
    show::region whole;
    for (const show::region& b : t.bands) whole.add_counts(b);
    CHECK(whole.poisoned_share() > 0);
    CHECK(std::isnan(t.blocks[0].scale));
    const show::region& cell = t.cells[t.layout.cell_of(235)];
    CHECK(cell.max_underflow == 31.0 / 32);
    CHECK(cell.underflow_share() < cell.max_underflow);
    const show::tensor_view again = shown(v, asking("mxfp4", 4), 3);
    const auto text = [](const show::tensor_view& of) {
        std::string all;
        for (const show::region& r : of.cells) {
            all += std::to_string(r.error2) + "\n";
        }
        for (const show::block_view& b : of.blocks) all += std::to_string(b.index) + "\n";
        return all;
    };
    CHECK(text(again) == text(t));
    for (std::size_t i = 0; i < t.cells.size(); ++i)
        CHECK(t.cells[i].error2 == again.cells[i].error2);
}

TEST_CASE("a block saturates without an element beyond the largest value") {
    std::vector<float> x = varied(64 * 64, 5);
    // Between 5 and 7 times the scale: every element becomes 6, and none is clamped.
    for (std::size_t i = 0; i < 32; ++i)
        x[9 * 64 + 32 + i] = 0.86F - 0.005F * static_cast<float>(i);
    show::show_request one = asking("mxfp4", 1);
    one.block = 19;
    const show::tensor_view t = shown(view(x, 64, 64).named("w"), one);
    REQUIRE(t.blocks.size() == 1);
    CHECK(t.blocks[0].of.saturated == 1);
    CHECK(t.blocks[0].of.clamp_share() == 0);
}

TEST_CASE("maps are bounded; grids of one row or column are folded") {
    const show::map_layout wide(block::grid{{1, 1000, 32 * 500}, 1, 32});
    CHECK(wide.rows == 24);
    CHECK(wide.columns == 63);
    CHECK(wide.tall == 42);
    CHECK(wide.wide == 8);
    CHECK(wide.cell_of(0) == 0);
    CHECK(wide.cell_of(999 * 500 + 499) == 24 * 63 - 1);
    CHECK(wide.block_of(1, 2) == 42 * 500 + 16);
    for (const block::grid& g :
         {block::grid{{1, 1, 32 * 3000}, 1, 32}, block::grid{{1, 3000, 32}, 1, 32}}) {
        const show::map_layout folded(g);
        CHECK(folded.folded);
        CHECK(folded.wide == 2);
        CHECK(folded.columns == 64);
        CHECK(folded.rows == 24);
        CHECK(folded.cell_of(2999) == 1499);
        CHECK(folded.block_of(23, 27) == 2998);
    }
    const show::map_layout one(block::grid{{1, 1, 1}, 1, 32});
    CHECK(one.rows * one.columns == 1);
    // Matrices of a stack are below each other.
    const show::map_layout stack(block::grid{{3, 32, 64}, 16, 16});
    CHECK(stack.lines == 6);
    CHECK(stack.rows == 6);
    CHECK(stack.columns == 4);
}

TEST_CASE("a family holds each scale rule of the dialect once, the recipe's first") {
    const auto names = [](const char* text) {
        std::vector<std::string> rules;
        for (const recipe& r : show::scale_family(parse_recipe(text))) {
            rules.push_back(show::rule_text(r));
        }
        return rules;
    };
    using list = std::vector<std::string>;
    CHECK(names("mxfp8:scale=even") ==
          list{"even", "floor", "ceil", "rceil", "nearest", "enhanced", "floor-bump", "search"});
    CHECK(names("mxfp8:scale=ceil-div-max") == list{"ceil-div-max", "floor", "ceil", "even",
                                                    "rceil", "nearest", "floor-bump", "search"});
    CHECK(names("nvfp4:scale=single-level") ==
          list{"single-level", "two-level", "four_over_six=mse", "four_over_six=mae",
               "four_over_six=abs_max", "search", "search-single-level"});
    CHECK(names("nvfp4:dialect=torchao") == list{"two-level", "single-level"});
    CHECK(names("fp8_1x128") == list{"amax", "amax-pow2"});
    CHECK(names("mxfp8:dialect=microxcaling") == list{"floor"});
}

TEST_CASE("a block of thousands of elements is listed by its largest errors") {
    const std::vector<float> x = varied(128 * 128, 4);
    const view v(x, 128, 128);
    const show::tensor_view t = shown(v, asking("fp8_128x128", 1));
    const show::block_view& b = t.blocks.front();
    CHECK(b.size == 128 * 128);
    REQUIRE(b.elements.size() == show::most_elements);
    CHECK(std::ranges::is_sorted(b.elements, {}, &show::element::index));
    double least = std::numeric_limits<double>::infinity();
    for (const show::element& e : b.elements) least = std::min(least, std::abs(e.error()));
    const std::vector<float> d = fake_quantize(v, parse_recipe("fp8_128x128"));
    std::size_t larger = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        larger += std::abs(static_cast<double>(d[i]) - static_cast<double>(x[i])) > least;
    }
    CHECK(larger <= show::most_elements);
}

TEST_CASE("what cannot be shown is one line") {
    const std::vector<float> x(64, 1.0F);
    const view v = view(x, 2, 32).named("w");
    show::show_request r = asking("mxfp8");
    r.block = 2;
    CHECK(message_of(v, r).find("there is no block 2: under mxfp8 it has 2 blocks, 0 to 1") !=
          std::string::npos);
    CHECK(message_of(v, asking("mxfp8:axis=2")).find("2 axes") != std::string::npos);
    CHECK(message_of(view(x.data(), dtype::f32, {0, 4}), asking("mxfp8")).find("no element") !=
          std::string::npos);
    const view flags(x.data(), dtype::boolean, {4});
    CHECK(message_of(flags, asking("mxfp8")).find("BOOL") != std::string::npos);
    const float one = 3;
    const show::tensor_view scalar = shown(view(&one, dtype::f32, {}), asking("nvfp4"));
    REQUIRE(scalar.blocks.size() == 1);
    CHECK(scalar.blocks.front().elements.front().x == 3);
}
