// SPDX-License-Identifier: Apache-2.0
#include "libmx/optimize/minimize.hpp"

#include <cmath>

#include "libmx/base/status.hpp"
#include "tests/catch.hpp"

using mx::optimize::minimize;

TEST_CASE("L-BFGS finds the minimum of a narrow valley, and the same bits again") {
    if (mx::optimize::nlopt_version().empty()) return;
    const auto rosenbrock = [](std::span<const double> x, std::span<double> g) {
        const double a = 1 - x[0], b = x[1] - x[0] * x[0];
        g[0] = -2 * a - 400 * x[0] * b;
        g[1] = 200 * b;
        return a * a + 100 * b * b;
    };
    const auto found = minimize(rosenbrock, {-1.2, 1});
    CHECK(found.at[0] == Approx(1).epsilon(1e-6));
    CHECK(found.at[1] == Approx(1).epsilon(1e-6));
    CHECK(found.value < 1e-12);
    CHECK(found.evaluations > 10);
    CHECK(minimize(rosenbrock, {-1.2, 1}).at == found.at);
}

TEST_CASE("values that are no numbers end no search") {
    if (mx::optimize::nlopt_version().empty()) return;
    // Not a number left of 0, which a long first step reaches.
    const auto f = [](std::span<const double> x, std::span<double> g) {
        g[0] = 1 - 1 / x[0];
        return x[0] - std::log(x[0]);
    };
    const auto found = minimize(f, {5});
    CHECK(found.at[0] == Approx(1).epsilon(1e-5));
}

TEST_CASE("a build without NLopt says what to install") {
    if (!mx::optimize::nlopt_version().empty()) {
        CHECK_NOTHROW(mx::optimize::require_nlopt("this"));
        return;
    }
    CHECK_THROWS_AS(mx::optimize::require_nlopt("this"), mx::base::error);
}
