// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "libmx/analysis/result.hpp"
#include "libmx/base/status.hpp"
#include "libmx/report/members.hpp"
#include "tests/catch.hpp"

using namespace mx;

namespace {

report::record with_contraction(report::value contraction) {
    report::record r{{"file", std::string("f")},
                     {"tensor", std::string("w")},
                     {"shape", report::list{report::tally(64), report::tally(172)}},
                     {"recipe", std::string("mxfp8")}};
    if (!std::holds_alternative<std::monostate>(contraction)) {
        r.emplace_back("contraction", std::move(contraction));
    }
    return r;
}

report::value object(int axis, int axes) {
    return report::record{{"axis", report::tally(axis)},
                          {"axes", report::tally(axes)},
                          {"extent", report::tally(7)},
                          {"assumed", true},
                          {"why", std::string("a graph")}};
}

}  // namespace

TEST_CASE("results carry what products sum over, and earlier files do not have it") {
    analysis::result_reader reader("r.json");
    const analysis::result first = reader.read(with_contraction(object(0, 1)));
    CHECK(first.of->sums_over.first == 0);
    CHECK(first.of->sums_over.last == 1);
    CHECK(first.of->sums_over.extent == 64);  // by the shape, whatever a file says
    CHECK(first.of->sums_over.assumed);
    CHECK(first.of->sums_over.why == "a graph");
    const report::record again = analysis::record_of(first);
    const auto* written = report::member<report::record>(again, "contraction");
    REQUIRE(written != nullptr);
    CHECK(report::number_of(*written, "extent") == 64);
    CHECK(reader.read(with_contraction(object(0, 2))).of->sums_over.extent == 64 * 172);
    CHECK_FALSE(reader.read(with_contraction({})).of->sums_over.any());
    CHECK_FALSE(reader.read(with_contraction(std::string("axis 0"))).of->sums_over.any());
    CHECK_THROWS_AS(reader.read(with_contraction(object(1, 2))), base::error);
    CHECK_THROWS_AS(reader.read(with_contraction(object(2, 1))), base::error);
}
