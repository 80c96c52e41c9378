// SPDX-License-Identifier: Apache-2.0
// Compares the reference for judging recipes with figures measured elsewhere: 2^20 numbers of
// Python's random.gauss, through mx analyze.
#include "libmx/policy/normal.hpp"

#include "tests/catch.hpp"

using namespace mx;

namespace {

struct expected_figures {
    const char* recipe;
    double sqnr_db, underflow, gain;
};

constexpr expected_figures table[] = {
    {"mxfp8", 30.638, 0.0, 0.99722},
    {"mxfp8:scale=even", 31.166, 0.0, 0.99832},
    {"mxfp8:scale=rceil", 31.514, 0.0, 0.99925},
    {"mxfp6:scale=even", 30.987, 0.02236, 0.99930},
    {"mxfp6_e3m2:scale=even", 25.536, 0.00284, 0.99725},
    {"mxfp4", 18.787, 0.08781, 0.98029},
    {"mxfp4:scale=even", 19.027, 0.09701, 0.98954},
    {"mxfp4:scale=rceil", 18.755, 0.10673, 0.98985},
    {"nvfp4", 20.431, 0.06792, 0.99560},
    {"mxint8", 41.690, 0.01085, 0.99999},
    {"fp8_128x128", 31.551, 0.00001, 0.99923},
    {"fp8_1x128", 31.785, 0.0, 0.99944},
};

TEST_CASE("normal data under each recipe has the figures of another sample") {
    for (const expected_figures& e : table) {
        CAPTURE(e.recipe);
        const metrics::row r = policy::figures_on_normal_data(codec::parse_recipe(e.recipe));
        // The two samples deviate by 0.06 dB; the rules of a format differ by more.
        CHECK(r.sqnr_db == Approx(e.sqnr_db).margin(0.08));
        CHECK(r.underflow_rate == Approx(e.underflow).margin(0.002));
        CHECK(r.gain == Approx(e.gain).margin(0.0005));
    }
}

TEST_CASE("stochastic rounding has its own reference, without a bias") {
    const auto figures = [](const char* recipe) {
        return policy::figures_on_normal_data(codec::parse_recipe(recipe));
    };
    const metrics::row random = figures("mxfp4:scale=rceil,round=stochastic");
    CHECK(random.sqnr_db < figures("mxfp4:scale=rceil").sqnr_db - 2);
    CHECK(random.gain == Approx(1).margin(0.001));
}

TEST_CASE("bits per element are those of whole blocks") {
    CHECK(policy::figures_on_normal_data(codec::parse_recipe("nvfp4")).bits_per_element == 4.5);
    CHECK(policy::figures_on_normal_data(codec::parse_recipe("mxfp6")).bits_per_element == 6.25);
}

}  // namespace
