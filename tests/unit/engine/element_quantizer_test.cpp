// SPDX-License-Identifier: Apache-2.0
// Recipes without blocks against conversions one at a time.
#include "libmx/engine/element_quantizer.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/wide_formats.hpp"
#include "tests/catch.hpp"
#include "tests/element_stats.hpp"

using namespace mx;

namespace {

constexpr std::uint64_t rows = 3, cols = 5000;

// Of many binades, within the range of each format and beyond.
std::vector<float> values() {
    std::mt19937 random(5);
    std::vector<float> x(rows * cols);
    for (float& v : x) {
        const auto u = static_cast<std::uint32_t>(random());
        v = std::ldexp(static_cast<float>(u & 0xffffffu) - 8388608.0f,
                       static_cast<int>(u >> 24) % 60 - 50);
    }
    x[7] = 0;
    x[8] = -0.0f;
    return x;
}

block::segment_stats stats_under(const std::string& recipe, std::span<const float> x) {
    return tests::element_stats(recipe, x, rows, cols, 1, 32);
}

struct expected {
    block::exact_totals sum{};
    double largest = 0;
    std::uint64_t overflow = 0, clamp = 0, underflow = 0, nonzero = 0, top = 0, subnormal = 0;

    void add(const format::element_params& f, float x, float d, const format::encoded& e) {
        block::error_part part = block::error_part::grid;
        if (x != 0) {
            const bool clamped = e.unbounded > f.limit(e.negative);
            ++nonzero;
            overflow += e.beyond_max ? 1u : 0u;
            clamp += clamped ? 1u : 0u;
            underflow += d == 0 ? 1u : 0u;
            top += e.magnitude == f.limit(e.negative) ? 1u : 0u;
            subnormal += e.magnitude != 0 && e.magnitude < f.smallest_normal ? 1u : 0u;
            if (clamped) part = block::error_part::clamp;
            if (!clamped && d == 0) part = block::error_part::underflow;
        }
        block::add_element(sum, x, {0, static_cast<double>(d)}, part, true);
        largest = std::max(largest, std::abs(static_cast<double>(d) - static_cast<double>(x)));
    }
};

void compare(const block::segment_stats& s, const expected& e) {
    CHECK(s.count.elements == rows * cols);
    CHECK(s.count.nonzero == e.nonzero);
    CHECK(s.count.overflow == e.overflow);
    CHECK(s.count.clamp == e.clamp);
    CHECK(s.count.underflow == e.underflow);
    CHECK(s.count.top_code == e.top);
    CHECK(s.count.subnormal == e.subnormal);
    CHECK(s.max_error == e.largest);
    CHECK(s.sum == e.sum);
    CHECK(s.block.blocks == 0);
}

}  // namespace

TEST_CASE("an element format without blocks gives the values of a conversion") {
    // In one run of rows, in which usual magnitudes are summed as integers, and in others.
    for (const float size : {1.0f, 0x1p-40f, 0x1p70f, 0x1p-110f}) {
        std::vector<float> x = values();
        for (float& v : x) v *= size;
        for (const format::element_format& f : format::element_formats) {
            for (const bool scaled : {false, true}) {
                CAPTURE(f.name, scaled, size);
                const codec::recipe r = codec::parse_recipe(std::string(f.name));
                const auto p = format::params_of(f, r.minimum == codec::int_min::full);
                const float most = format::decode(f, f.max_code());
                float amax = 0;
                for (const float v : x) amax = std::max(amax, std::abs(v));
                const float s = scaled ? amax / most : 1.0f;
                expected e;
                for (const float v : x) {
                    const float y = v / s;
                    const auto code = format::cast_code(p, {}, base::bits_of(y), true, 0);
                    const auto wide = format::encode_magnitude(p, {}, base::bits_of(y), 0, 0);
                    e.add(p, v, format::decode(f, code) * s, wide);
                }
                compare(stats_under(std::string(f.name) + (scaled ? ":scale=tensor" : ""), x), e);
                CHECK((scaled || size < 1 || e.clamp > 0));
            }
        }
    }
}

TEST_CASE("a wide format gives the values of a conversion, and its largest value beyond it") {
    for (const bool usual : {false, true}) {
        std::vector<float> x = values();
        x[1] = usual ? 65504.0f : std::numeric_limits<float>::max();
        x[2] = std::numeric_limits<float>::denorm_min();
        x[3] = 0x1.8p-149f + 0x1p-133f;
        x[4] = 65519.0f;
        x[5] = -65520.0f;
        for (const format::element_format& f : format::wide_formats) {
            CAPTURE(f.name, usual);
            const auto p = format::params_of(f, false);
            const auto mode = codec::params_of(codec::parse_recipe(std::string(f.name))).mode;
            const float most = format::decode(f, f.max_code());
            std::vector<float> d = x;
            format::round_to_wide(f.name, d);
            expected e;
            for (std::size_t i = 0; i < x.size(); ++i) {
                const auto wide = format::encode_magnitude(p, mode, base::bits_of(x[i]), 0, 0);
                CHECK(std::isinf(d[i]) == (wide.unbounded > p.limit(wide.negative)));
                e.add(p, x[i], std::isinf(d[i]) ? std::copysign(most, x[i]) : d[i], wide);
            }
            compare(stats_under(std::string(f.name), x), e);
            CHECK((e.largest == 0) == (f.name == "f32"));
            CHECK((e.clamp > 0) == (f.name == "f16" || (f.name == "bf16" && !usual)));
        }
    }
}

TEST_CASE("without blocks NaN and Inf affect no other element") {
    std::vector<float> x(rows * cols, 1.0f);
    x[10] = std::numeric_limits<float>::quiet_NaN();
    x[11] = -std::numeric_limits<float>::infinity();
    for (const char* recipe : {"e4m3", "e4m3:scale=tensor", "bf16", "f32", "int8"}) {
        const block::segment_stats s = stats_under(recipe, x);
        CAPTURE(recipe);
        CHECK(s.count.nan == 1);
        CHECK(s.count.inf == 1);
        CHECK(s.count.poisoned == 0);
        CHECK(s.count.nonzero == rows * cols - 2);
        CHECK(s.max_error == 0);
    }
}
