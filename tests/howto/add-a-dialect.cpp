// SPDX-License-Identifier: Apache-2.0
// After docs/howto/add-a-dialect.md: the dialect is in the list and explained, its blocks equal
// those of the oracle, and every backend here computes it.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "apps/mx/oracle_recipe.hpp"
#include "libmx/api/mx/mx.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/dialect_columns.hpp"
#include "libmx/documents/reference.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/block_comparison.hpp"

TEST_CASE("a dialect that was added by one row is listed and explained") {
    const mx::codec::dialect* const d = mx::codec::find_dialect("sample");
    REQUIRE(d != nullptr);
    CHECK(mx::codec::find_dialect("sample@0123456") == d);
    const auto names = mx::documents::explained_names();
    CHECK(std::ranges::find(names, d->name) != names.end());
    CHECK(mx::to_string(mx::parse_recipe("mxfp4:dialect=sample")) == "mxfp4:dialect=sample");
    CHECK(mx::parse_recipe("mxfp4:dialect=sample").round == mx::format::rounding::away);
    CHECK(mx::codec::find_dialect_column("inf_amax")->answer(*d).words.word == "254");
}

TEST_CASE("blocks of a dialect that was added equal the oracle's") {
    const mx::recipe r = mx::parse_recipe("mxfp4:dialect=sample");
    const mx::oracle::recipe stated = mx::app::oracle_recipe(r, 1);
    REQUIRE(stated.by != nullptr);
    const auto list = mx::oracle::list_values(*stated.by, *r.element, stated.full_range);
    mx::tests::comparison result;
    std::uint64_t seed = 0;
    for (int round = 0; round < 200; ++round) {
        for (const mx::tests::block_kind kind : mx::tests::block_kinds) {
            mx::tests::compare_block(r, stated, list, kind, 32, ++seed, 1, result);
        }
    }
    CAPTURE(result.first);
    CHECK(result.differences == 0);
}

TEST_CASE("every backend computes a dialect that was added") {
    // The largest float32 below 2^20, whose log2 is 20 in float32, and an Inf.
    std::vector<float> x(64, 1);
    x[3] = std::nextafter(0x1p20f, 0.0f);
    x[40] = INFINITY;
    for (const mx::codec::backend& b : mx::codec::backends()) {
        if (!b.available()) continue;
        CAPTURE(std::string(b.name));
        const auto q =
            mx::quantize(x, mx::parse_recipe("mxfp4:dialect=sample"), {.backend = b.name});
        CHECK(std::vector(q.scale_codes().begin(), q.scale_codes().end()) ==
              std::vector<std::uint8_t>{127 + 20 - 2, 254});
    }
}
