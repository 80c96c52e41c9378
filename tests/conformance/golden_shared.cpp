// SPDX-License-Identifier: Apache-2.0
// Formats of values only against their authors' code, through every path that quantizes with them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/engine/amax_pass.hpp"
#include "libmx/format/shared_formats.hpp"
#include "libmx/studies/products/quantized_operand.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/vectors.hpp"
#include "tests/element_stats.hpp"

using namespace mx;

namespace {

struct shared_case {
    const format::shared_format* format;
    std::vector<float> x, expected;
    std::size_t row;
    float amax;
};

shared_case read_case(const std::string& path) {
    const auto v = tests::read_vectors(path);
    shared_case c{format::find_shared_format(v.metadata.at("recipe")), v.tensor.at("input"),
                  v.tensor.at("value"), 0, 0};
    REQUIRE(c.format != nullptr);
    c.row = static_cast<std::size_t>(v.last_axis.at("input"));
    REQUIRE(c.row == static_cast<std::size_t>(c.format->block));
    c.amax = base::float_from_bits(engine::finite_amax(c.x));
    return c;
}

// What `f` makes of x, as its authors return it.
std::vector<float> returned(const shared_case& c, std::vector<float> d) {
    if (c.format->element.name == "razer") {
        std::ranges::transform(d, d.begin(), base::rounded_to_bf16);
    }
    return d;
}

}  // namespace

TEST_CASE("formats of values only equal their authors' code") {
    const std::vector<std::string> files = tests::vector_files("shared");
    CHECK(files.size() == format::shared_formats().size());
    for (const std::string& path : files) {
        const shared_case c = read_case(path);
        const std::string name(c.format->element.name);
        INFO(name);
        std::vector<float> d = c.x;
        format::round_to_shared(*c.format, c.amax, c.row, d);
        const std::vector<float> ours = returned(c, d);
        for (std::size_t i = 0; i < ours.size(); ++i) {
            INFO("block " << i / c.row << ", element " << i % c.row << ": " << c.x[i]);
            REQUIRE(ours[i] == c.expected[i]);  // +0 and -0 are equal
        }

        // The same through a product's operand, along rows and along columns.
        const std::uint64_t rows = c.x.size() / c.row;
        products::matrix m;
        m.rows = static_cast<std::size_t>(rows);
        m.cols = c.row;
        m.values = c.x;
        const auto recipe = products::parse_operand_recipe(name);
        CHECK(products::quantize_operand(m, products::reduction::last, recipe, {}, {}).values == d);
        std::vector<float> turned(c.x.size());
        for (std::size_t i = 0; i < c.x.size(); ++i) {
            turned[i % c.row * m.rows + i / c.row] = c.x[i];
        }
        m.values = turned;
        std::swap(m.rows, m.cols);
        CHECK(products::quantize_operand(m, products::reduction::first, recipe, {}, {}).values ==
              d);

        // And in the figures of an analysis.
        double error2 = 0, largest = 0;
        std::uint64_t gone = 0, nonzero = 0;
        for (std::size_t i = 0; i < d.size(); ++i) {
            const double off = static_cast<double>(d[i]) - static_cast<double>(c.x[i]);
            error2 += off * off;
            largest = std::max(largest, std::abs(off));
            nonzero += c.x[i] != 0;
            gone += c.x[i] != 0 && d[i] == 0;
        }
        for (const bool down : {false, true}) {
            const auto s = down ? tests::element_stats(name, turned, c.row, rows, c.row, 1)
                                : tests::element_stats(name, c.x, rows, c.row, 1, c.row);
            CHECK(s.block.blocks == rows);
            CHECK(s.count.elements == c.x.size());
            CHECK(s.count.nonzero == nonzero);
            CHECK(s.count.underflow == gone);
            CHECK(s.max_error == largest);
            CHECK(std::abs(s.sum.error2().value() - error2) <= 1e-12 * error2);
        }
    }
}

TEST_CASE("a block of values only with NaN or Inf is NaN and leaves the others alone") {
    for (const format::shared_format& f : format::shared_formats()) {
        INFO(f.element.name);
        const auto length = static_cast<std::size_t>(f.block);
        // Two blocks and a short one in each of two rows.
        std::vector<float> x(2 * (2 * length + 3));
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
        const float amax = 1;
        std::vector<float> clean = x, spoilt = x;
        format::round_to_shared(f, amax, x.size() / 2, clean);
        spoilt[length + 1] = std::numeric_limits<float>::infinity();
        format::round_to_shared(f, amax, x.size() / 2, spoilt);
        for (std::size_t i = 0; i < x.size(); ++i) {
            const bool in = i >= length && i < 2 * length;
            CHECK((in ? std::isnan(spoilt[i]) : spoilt[i] == clean[i]));
        }
        x[length + 1] = std::numeric_limits<float>::quiet_NaN();
        const auto s =
            tests::element_stats(std::string(f.element.name), x, 2, x.size() / 2, 1, length);
        CHECK(s.count.nan == 1);
        CHECK(s.count.poisoned == length - 1);
    }
}

TEST_CASE("elements beyond the largest value of their block") {
    // 7 S with S = 1, and S = 7/8 rounded up or down to a quarter of its binade.
    std::vector<float> x(64, 0.0f);
    x[0] = 7.0f;
    const auto exact = tests::element_stats("hif4", x, 1, 64, 1, 64);
    CHECK(exact.count.overflow == 0);
    CHECK(exact.count.clamp == 0);
    CHECK(exact.count.top_code == 1);
    x[0] = 7.75f;  // S = 1: 7.75 / 4 is 1.9375, nearer to 2 than to 1.75
    const auto clamped = tests::element_stats("hif4", x, 1, 64, 1, 64);
    CHECK(clamped.count.overflow == 1);
    CHECK(clamped.count.clamp == 1);
    CHECK(clamped.max_error == 0.75);
    CHECK(clamped.sum.clamp.value() == 0.5625);
}

TEST_CASE("a midpoint of RaZeR belongs to the value below it") {
    const format::shared_format& f = *format::find_shared_format("razer");
    std::vector<float> x(16, 0.0f);  // a tensor scale of 1, and a block scale of 1 under 5 and -5
    x[0] = 6;
    x[1] = 2.5f;
    x[2] = -2.5f;
    x[3] = x[4] = x[5] = 5;
    std::vector<format::shared_element> to(x.size());
    f.quantize(x, 168, to);
    CHECK(to[0].value == 6);
    CHECK(to[1].value == 2);
    CHECK(to[2].value == -3);
    CHECK(to[3].value == 5);  // the special value that the block takes
    CHECK(to[6].value == 0);
}
