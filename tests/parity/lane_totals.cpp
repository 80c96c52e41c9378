// SPDX-License-Identifier: Apache-2.0
// Compares the sums of lanes on the host with exact_totals, digit for digit, for terms of any size.
#include "libmx/codec/cuda/lane_totals.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "tests/catch.hpp"

namespace {

namespace block = mx::block;
namespace cuda = mx::codec::cuda;

constexpr int lanes = cuda::lane_count;

struct element {
    float x;
    block::exact_value d;
    block::error_part part;
};

// A possible element: the product of a scale and a value, sometimes with an offset.
element element_at(std::mt19937_64& random, int exponent) {
    std::normal_distribution<float> normal;
    const float x = std::ldexp(normal(random), exponent);
    const auto any = [&](std::uint64_t n) { return static_cast<int>(random() % n); };
    const double scale = std::ldexp(1.0 + any(1 << 20) * 0x1p-20, exponent - 3);
    const double offset = any(3) == 0 ? std::ldexp(any(2047) - 1023, exponent - 9) : 0.0;
    return {x, {offset, scale * (any(31) - 15)}, static_cast<block::error_part>(any(3))};
}

// The totals of a warp before they are added to the recipe's, and those of all its elements.
struct warp {
    std::unique_ptr<block::exact_totals> given = std::make_unique<block::exact_totals>();
    std::unique_ptr<block::exact_totals> expected = std::make_unique<block::exact_totals>();
    cuda::per_lane<cuda::lane_totals<true>> sums;

    warp() {
        cuda::each([&](int lane) { sums[lane] = cuda::no_totals<true>(*given); });
    }
    void aim(int exponent) {
        cuda::per_lane<int> all;
        cuda::each([&](int lane) { all[lane] = lane == 7 ? exponent : cuda::no_exponent; });
        cuda::aim(sums, all);
    }
    void add(int lane, const element& e) {
        sums[lane].add(e.x, e.d, e.part, true);
        expected->add(e.x, e.d, e.part, true);
    }
    bool equal() {
        cuda::give_totals(sums);
        block::each_exact_sum([](mx::base::exact_sum& s) { s.settle(); }, *given);
        return *given == *expected;
    }
};

}  // namespace

TEST_CASE("lanes add up exactly what exact_totals does") {
    std::mt19937_64 random(11);
    for (const int spread : {0, 3, 20, 60, 120}) {
        warp w;
        for (int round = 0; round < 40; ++round) {
            const int exponent = static_cast<int>(random() % 61) - 30;
            w.aim(exponent);
            for (int i = 0; i < 4 * lanes; ++i) {
                const int below = spread == 0 ? 0 : static_cast<int>(random() % spread);
                w.add(i % lanes, element_at(random, std::max(exponent - below, -120)));
            }
        }
        CAPTURE(spread);
        CHECK(w.equal());
    }
}

TEST_CASE("lanes that were never aimed give every term at once") {
    std::mt19937_64 random(12);
    warp w;
    for (int i = 0; i < 3 * lanes; ++i) w.add(i % lanes, element_at(random, i % 50));
    CHECK(w.equal());
}

TEST_CASE("lanes add up zeros, subnormal numbers and the ends of the units") {
    std::mt19937_64 random(15);
    for (const int aimed : {-126, -100, -60, 0, 90}) {
        warp w;
        w.aim(aimed);
        for (int i = 0; i < 4000; ++i) {
            // Places of the leading bit from below the units to above them.
            const int exponent = std::clamp(aimed + 8 - i % 70, -149, 120);
            element e = element_at(random, exponent);
            if (i % 3 == 0) e.x = std::ldexp(i % 2 == 0 ? 1.0f : -1.0f, exponent);
            if (i % 5 == 0) e.x = i % 2 == 0 ? 0.0f : -0.0f;
            if (i % 7 == 0) e.d.product = i % 2 == 0 ? 0.0 : -0.0;
            w.add(i % lanes, e);
        }
        CAPTURE(aimed);
        CHECK(w.equal());
    }
}

TEST_CASE("ordinary values stay in the lanes until the end") {
    std::mt19937_64 random(13);
    warp w;
    w.aim(2);
    for (int i = 0; i < 256 * lanes; ++i) {
        element e = element_at(random, 0);
        e.x = std::ldexp(std::round(std::ldexp(e.x, 12)), -12);
        e.d = {0, std::ldexp(std::round(std::ldexp(e.d.product, 3)), -3)};
        w.add(i % lanes, e);
    }
    block::each_exact_sum([](mx::base::exact_sum& s) { s.settle(); }, *w.given);
    CHECK(*w.given == block::exact_totals{});
    CHECK(w.equal());
}

TEST_CASE("many additions never leave the 128 bits") {
    warp w;
    w.aim(0);
    // The largest that fit, all of one sign.
    const element most{-7.99f, {0, 7.99}, block::error_part::clamp};
    for (int i = 0; i < 40000; ++i) w.add(i % 2, most);
    CHECK(w.equal());
    // The largest integers at the highest places, in all lanes.
    warp full;
    full.aim(0);
    const std::int64_t n = -((std::int64_t{1} << 62) - 1);
    for (int i = 0; i < 40 * lanes; ++i) {
        const int exponent = 12 - i / lanes / 8;
        full.sums[i % lanes].x.add(n, exponent);
        // In two halves, which doubles represent exactly.
        full.expected->x.add(std::ldexp(static_cast<double>(n >> 31), exponent + 31));
        full.expected->x.add(std::ldexp(static_cast<double>(n & 0x7fffffff), exponent));
    }
    CHECK(full.equal());
}

TEST_CASE("wide integers of either sign go to the digits") {
    std::mt19937_64 random(14);
    mx::base::exact_sum sum, expected;
    for (int i = 0; i < 20000; ++i) {
        const auto high = static_cast<std::int64_t>(random()) >> (random() % 64);
        const auto low = random() >> (random() % 64);
        const int exponent = static_cast<int>(random() % 1600) - 1074;
        cuda::add_together(sum, {low, high}, exponent);
        const auto part = [&](std::int64_t bits, int at) {
            expected.add(std::ldexp(static_cast<double>(bits), exponent + at));
        };
        part(static_cast<std::int64_t>(low & 0xffffffffu), 0);
        part(static_cast<std::int64_t>(low >> 32), 32);
        part(high & 0xffffffff, 64);
        part(high >> 32, 96);
    }
    sum.settle();
    CHECK(sum == expected);
}
