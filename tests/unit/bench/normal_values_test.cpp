// SPDX-License-Identifier: Apache-2.0
#include "libmx/bench/normal_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/bench/row_source.hpp"
#include "libmx/metrics/row.hpp"
#include "tests/catch.hpp"

namespace {

template <typename T>
std::vector<T> values(mx::tensor::dtype type, std::size_t count) {
    std::vector<T> out(count);
    mx::bench::fill_normal(type, std::as_writable_bytes(std::span(out)));
    return out;
}

}  // namespace

TEST_CASE("values to measure with are nearly normal with deviation 1/32") {
    const std::vector<float> x = values<float>(mx::tensor::dtype::f32, 1 << 18);
    double sum = 0, square = 0, fourth = 0;
    for (const float v : x) {
        REQUIRE(v != 0);
        const double y = 32.0 * static_cast<double>(v);
        sum += y;
        square += y * y;
        fourth += y * y * y * y;
    }
    const auto n = static_cast<double>(x.size());
    CHECK(std::abs(sum / n) < 0.01);
    CHECK(square / n == Approx(1).epsilon(0.01));
    CHECK(fourth / n == Approx(3).epsilon(0.05));
}

TEST_CASE("values to measure with are the same numbers in every type") {
    constexpr std::size_t count = 600000;  // longer than their period
    const auto wide = values<float>(mx::tensor::dtype::f32, count);
    const auto bf16 = values<std::uint16_t>(mx::tensor::dtype::bf16, count);
    const auto half = values<std::uint16_t>(mx::tensor::dtype::f16, count);
    bool close = true;
    for (std::size_t i = 0; i < count; ++i) {
        const float room = std::abs(wide[i]) / 256;
        close = close && std::abs(mx::base::float_from_bf16(bf16[i]) - wide[i]) <= room;
        close = close && std::abs(mx::base::float_from_half(half[i]) - wide[i]) <= room + 6e-8f;
    }
    CHECK(close);
    CHECK(wide[0] != wide[1]);
}

TEST_CASE("values to measure with come with the largest of them") {
    const auto check = [](auto stored, mx::tensor::dtype type, auto&& widen) {
        std::vector<decltype(stored)> out(600000);
        const mx::codec::tensor_facts facts =
            mx::bench::fill_normal(type, std::as_writable_bytes(std::span(out)));
        float largest = 0;
        for (const auto v : out) largest = std::max(largest, std::abs(widen(v)));
        CHECK(facts.amax_bits == mx::base::bits_of(largest));
    };
    check(0.0f, mx::tensor::dtype::f32, [](float x) { return x; });
    check(std::uint16_t{0}, mx::tensor::dtype::bf16, mx::base::float_from_bf16);
    check(std::uint16_t{0}, mx::tensor::dtype::f16, mx::base::float_from_half);
}

TEST_CASE("passes measure with the outer scale of all values") {
    constexpr std::size_t count = 1 << 20;
    std::vector<float> x(count);
    const auto bytes = std::as_writable_bytes(std::span(x));
    const mx::codec::tensor_facts facts = mx::bench::fill_normal(mx::tensor::dtype::f32, bytes);
    mx::bench::row_source rows(mx::tensor::dtype::f32, bytes, count, facts);
    // Under an outer scale of zero, as of zeros, this dialect leaves nothing of the values.
    const mx::codec::recipe recipe = mx::codec::parse_recipe("nvfp4:dialect=torchao");
    const auto totals = mx::analysis::analyze_matrix(rows.next(0), {&recipe, 1}, false, {});
    const mx::metrics::row row = mx::metrics::row_of(totals.front().totals);
    CHECK(row.sqnr_db > 19);
    CHECK(row.sqnr_db < 22);
}
