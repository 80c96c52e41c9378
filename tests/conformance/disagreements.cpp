// SPDX-License-Identifier: Apache-2.0
// The disagreements between implementations: each side must give the observed result. The results
// are typed here from runs and sources of the implementations, not computed.
#include <cmath>
#include <limits>

#include "libmx/base/bits.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/conformance/disagreements.hpp"
#include "tests/catch.hpp"

namespace {

using namespace mx;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

struct expected {
    int number;
    conformance::response a, b;
};

// {scale code, scale, element code, value}
const expected answers[] = {
    {1, {126, 0.5f, 0x6, 2.0f}, {125, 0.25f, 0x7, 1.5f}},
    {2, {255, nan, 0x3, nan}, {-1, 0x1p127f, 0x4, inf}},
    {3, {119, 0x1p-8f, 0x7e, 1.75f}, {120, 0x1p-7f, 0x77, 1.875f}},
    {4, {135, 256.0f, 0x6, 1024.0f}, {134, 128.0f, 0x7, 768.0f}},
    {5, {124, 0.125f, 0x0, 0.0f}, {123, 0.0625f, 0x1, 0.015625f}},
    {6, {-1, 0, 0x5, 3.0f}, {-1, 0, 0x4, 2.0f}},
    {7, {254, 0x1p127f, 0x7e, inf}, {255, nan, 0x7f, nan}},
    {8, {254, 0x1p127f, -1, 0}, {255, nan, -1, 0}},
    {9, {128, 2.0f, -1, 0}, {127, 1.0f, -1, 0}},
    {10, {137, 1024.0f, 0x7, 6144.0f}, {138, 2048.0f, 0x5, 6144.0f}},
    {11, {127, 1.0f, 0x7f, 480.0f}, {128, 2.0f, 0x77, 480.0f}},
    {12, {127, 1.0f, 0x80, -2.0f}, {127, 1.0f, 0x81, -1.984375f}},
    {13, {1, 0x1p-126f, 0x0, 0.0f}, {0, 0x1p-127f, 0x0, 0.0f}},
    {14, {-1, 0, 0x7, 6.0f}, {-1, 0, 0x8, -0.0f}},
    {15, {-1, 0, 0x7e, 448.0f}, {-1, 0, 0x7f, nan}},
    {16, {0x08, 0x1p-6f, 0x4, 0.03125f}, {0x03, 0x1.8p-8f, 0x7, 0x1.2p-5f}},
    {17, {0x7e, 448.0f, 0x6, 1792.0f}, {0x79, 288.0f, 0x7, 1728.0f}},
    {18, {119, 0x1p-8f, 0x0, 0.0f}, {119, 0x1p-8f, 0x1, 0x1p-17f}},
    {20, {-1, 0, 0x7f, nan}, {-1, 0, 0x7e, 448.0f}},
    {21, {-1, 0, 0x7e, 448.0f}, {-1, 0, 0x7f, nan}},
};

bool same(float a, float b) {
    return (std::isnan(a) && std::isnan(b)) || base::bits_of(a) == base::bits_of(b);
}

void check(const conformance::response& got, const conformance::response& want) {
    CAPTURE(conformance::to_string(got), conformance::to_string(want));
    CHECK(got.scale_code == want.scale_code);
    CHECK(same(got.scale, want.scale));
    CHECK(got.code == want.code);
    CHECK(same(got.value, want.value));
}

}  // namespace

TEST_CASE("Every disagreement is answered as seen of the implementations") {
    REQUIRE(conformance::disagreements().size() == std::size(answers));
    for (std::size_t i = 0; i < std::size(answers); ++i) {
        const conformance::disagreement& d = conformance::disagreements()[i];
        CAPTURE(d.number, d.title, d.a.question, d.b.question);
        REQUIRE(d.number == answers[i].number);
        check(conformance::ask(d, d.a), answers[i].a);
        check(conformance::ask(d, d.b), answers[i].b);
    }
}

TEST_CASE("The two sides of every disagreement differ") {
    for (const conformance::disagreement& d : conformance::disagreements()) {
        CAPTURE(d.number, d.title);
        CHECK(conformance::to_string(conformance::ask(d, d.a)) !=
              conformance::to_string(conformance::ask(d, d.b)));
    }
}

TEST_CASE("Disagreements are numbered in order and ask those they name") {
    int last = 0;
    for (const conformance::disagreement& d : conformance::disagreements()) {
        CAPTURE(d.number);
        CHECK(d.number > last);
        last = d.number;
        for (const conformance::respondent& who : {d.a, d.b}) {
            REQUIRE(codec::find_dialect(who.dialect) != nullptr);
            if (d.kind != conformance::probe::row) continue;
            CHECK(codec::parse_recipe(who.question).by->name == who.dialect);
        }
    }
}
