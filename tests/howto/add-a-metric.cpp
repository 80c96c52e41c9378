// SPDX-License-Identifier: Apache-2.0
// After docs/howto/add-a-metric.md: the metric is in the list, and computed.
#include <cmath>

#include "libmx/metrics/metrics.hpp"
#include "tests/catch.hpp"

TEST_CASE("a metric that was added is listed and computed") {
    const mx::metrics::metric* const metric = mx::metrics::find("bias_share");
    REQUIRE(metric != nullptr);
    // Two elements with errors of 1 and 3: (4/2)^2 / (10/2).
    mx::metrics::totals t;
    t.count.elements = 2;
    for (const double error : {1.0, 3.0}) {
        t.sum.x2.add(1);
        t.sum.xd.add(1 + error);
        t.sum.d2.add((1 + error) * (1 + error));
        t.sum.x.add(1);
        t.sum.d.add(1 + error);
    }
    const mx::metrics::row row = mx::metrics::row_of(t);
    CHECK(row.*metric->member == 4.0 / 5.0);
    CHECK(std::isnan(mx::metrics::row_of({}).*metric->member));
}
