// SPDX-License-Identifier: Apache-2.0
// After docs/howto/add-an-accumulator.md: the model is in the list, and every backend here sums by
// it.
#include <string>
#include <vector>

#include "libmx/api/mx/mx.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/backends.hpp"
#include "tests/catch.hpp"

namespace {

// One output: 1 * 1 and then x * x, in steps of four products.
float sum_of(const std::string& model, float x, std::size_t second, std::string_view backend) {
    std::vector<float> a(8);
    a[0] = 1;
    a[second] = x;
    const mx::recipe e4m3 = mx::parse_recipe("e4m3");
    return mx::multiply({a, 1, 8}, e4m3, {a, 1, 8}, e4m3, model, {.backend = backend}).front();
}

}  // namespace

TEST_CASE("a model that was added by one row is listed, and every backend sums by it") {
    REQUIRE(mx::gemm::find_accumulator("example.fp8") != nullptr);
    for (const mx::gemm::backend& b : mx::gemm::backends()) {
        if (!b.available()) continue;
        CAPTURE(std::string(b.name));
        for (const std::size_t second : {1u, 6u}) {  // in the first step, in the next one
            CHECK(sum_of("example.fp8", 0x1p-6f, second, b.name) == 1 + 0x1p-12f);
            CHECK(sum_of("example.fp8", 0x1p-7f, second, b.name) == 1);  // below 13 bits
            CHECK(sum_of("sm100.f8f6f4", 0x1p-7f, second, b.name) == 1 + 0x1p-14f);
        }
    }
}
