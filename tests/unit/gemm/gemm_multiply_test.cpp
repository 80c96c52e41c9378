// SPDX-License-Identifier: Apache-2.0
// Products of matrices: arrangement around the steps, specials, corners worked out by hand.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/status.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/exact_dot.hpp"
#include "libmx/gemm/multiply.hpp"
#include "libmx/gemm/operand_formats.hpp"
#include "libmx/gemm/terms.hpp"
#include "tests/catch.hpp"

namespace {

using namespace mx::gemm;
using mx::base::bits_of;
using mx::base::float_from_bits;

operand matrix_of(const char* format, std::size_t rows, std::size_t depth,
                  std::vector<std::uint32_t> codes) {
    operand x;
    x.rows = rows;
    x.depth = depth;
    x.format = find_operand_format(format);
    x.codes = std::move(codes);
    return x;
}

operand floats(std::size_t rows, std::size_t depth, const std::vector<float>& values) {
    std::vector<std::uint32_t> codes;
    for (const float v : values) codes.push_back(bits_of(v));
    return matrix_of("f32", rows, depth, std::move(codes));
}

multiply_control plainly() {
    multiply_control c;
    c.threads = 1;
    c.backend = "scalar";
    return c;
}

std::vector<std::uint32_t> product(const operand& a, const operand& b, const std::string& model,
                                   const arrangement& how = {},
                                   const std::vector<std::uint32_t>& c = {}) {
    return multiply(a, b, c, parse_accumulator(model), how, plainly());
}

float one(const operand& a, const operand& b, const std::string& model, const arrangement& how = {},
          const std::vector<std::uint32_t>& c = {}) {
    return float_from_bits(product(a, b, model, how, c).at(0));
}

// e4m3 codes.
constexpr std::uint32_t e4m3_one = 0x38, e4m3_least = 0x01, e4m3_nan = 0x7f;

operand random_fp8(std::size_t rows, std::size_t depth, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::uint32_t> codes;
    for (std::size_t i = 0; i < rows * depth; ++i) {
        const auto code = static_cast<std::uint32_t>(random() % 256);
        codes.push_back((code & 0x7f) == e4m3_nan ? 0u : code);
    }
    return matrix_of("e4m3", rows, depth, std::move(codes));
}

void refuses(const operand& a, const operand& b, const std::string& model,
             const std::string& words) {
    try {
        product(a, b, model);
        FAIL("not refused");
    } catch (const mx::base::error& e) {
        CHECK(e.kind() == mx::base::error_kind::usage);
        CHECK_THAT(e.what(), Catch::Matchers::Contains(words));
    }
}

}  // namespace

TEST_CASE("the exact model rounds once where sums of float32 lose everything") {
    const operand a = floats(1, 4, {0x1p100F, 1.0F, -0x1p100F, 0x1p-24F});
    const operand ones = floats(1, 4, {1.0F, 1.0F, 1.0F, 1.0F});
    CHECK(one(a, ones, "exact") == 1.0F);  // 1 + 2^-24 is a tie, to even
    const operand more = floats(1, 5, {0x1p100F, 1.0F, -0x1p100F, 0x1p-24F, 0x1p-149F});
    const operand five = floats(1, 5, {1.0F, 1.0F, 1.0F, 1.0F, 1.0F});
    CHECK(one(more, five, "exact") == std::nextafter(1.0F, 2.0F));
    CHECK(one(a, ones, "fp32.fma") == 0x1p-24F);
    CHECK(one(a, ones, "fp32.fma", {k_order::descending}) == 0.0F);
    // (2^100 + 1) + (-2^100 + 2^-24)
    CHECK(one(a, ones, "fp32.pairwise") == 0.0F);
}

TEST_CASE("an exact dot product agrees with long double where that is wide enough") {
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        std::vector<double> a, b;
        long double sum = 0;
        for (int k = 0; k < 40; ++k) {
            a.push_back(static_cast<double>(static_cast<int>(random() % 2001) - 1000));
            b.push_back(std::ldexp(static_cast<double>(random() % 1000), -10));
            sum += static_cast<long double>(a.back()) * static_cast<long double>(b.back());
        }
        CHECK(exact_dot(a.data(), b.data(), a.size(), 0.5F) == static_cast<float>(sum + 0.5L));
    }
    const double zeros[] = {0.0, -0.0};
    const double minus[] = {-1.0, 1.0};
    CHECK(std::signbit(exact_dot(zeros, minus, 2, -0.0F)));
    CHECK_FALSE(std::signbit(exact_dot(zeros, minus, 2, 0.0F)));
}

TEST_CASE("a step cuts off F bits below the largest exponent") {
    // 1 * 1 and 2^-9 * 2^-9 * ...: products 1 and 2^-18 under F = 25 and F = 13.
    const operand a = matrix_of("e4m3", 1, 2, {e4m3_one, e4m3_least});
    CHECK(one(a, a, "sm100.f8f6f4") == 1.0F + 0x1p-18F);
    CHECK(one(a, a, "sm90.wgmma.fp8") == 1.0F);
    CHECK(one(a, a, "sm100.f8f6f4:fraction_bits=17") == 1.0F);
    // The subnormal's product is 2^-18 whole, but it aligns at 2^-12.
    const operand tiny = matrix_of("e4m3", 1, 1, {e4m3_least});
    CHECK(one(tiny, tiny, "sm100.f8f6f4:fraction_bits=5") == 0.0F);
    CHECK(one(tiny, tiny, "sm100.f8f6f4:fraction_bits=6") == 0x1p-18F);
    CHECK(one(tiny, tiny, "sm100.f8f6f4:fraction_bits=5,subnormals=leading-bit") == 0x1p-18F);
    CHECK(one(tiny, tiny, "sm100.f8f6f4:fraction_bits=6,exponent_floor=-11") == 0.0F);
}

TEST_CASE("zeros and what becomes zero have the sign that the policy says") {
    const operand plus = matrix_of("bf16", 1, 1, {0x0000});
    const operand minus = matrix_of("bf16", 1, 1, {0x8000});
    const operand unit = matrix_of("bf16", 1, 1, {0x3f80});
    const operand least = matrix_of("bf16", 1, 1, {0x0001});  // 2^-133
    const operand small = matrix_of("bf16", 1, 1, {0x9f00});  // -2^-65
    arrangement first;
    first.accumulate_c = true;
    const std::vector<std::uint32_t> minus_zero{0x80000000u};
    CHECK(product(minus, unit, "sm100.f16:fused_length=1", first, minus_zero)[0] == 0u);
    CHECK(product(minus, unit, "sm100.f16:fused_length=1,zero=kept", first, minus_zero)[0] ==
          0x80000000u);
    CHECK(product(plus, unit, "sm100.f16:fused_length=1,zero=kept", first, minus_zero)[0] == 0u);
    // -2^-198 is below the last kept bit; with a low floor it is rounded to zero instead.
    CHECK(product(least, small, "sm100.f16")[0] == 0u);
    CHECK(product(least, small, "sm100.f16:exponent_floor=-200")[0] == 0x80000000u);
    CHECK(product(least, small, "sm100.f16:exponent_floor=-200,underflow=plus")[0] == 0u);
}

TEST_CASE("NaN and Inf are decided by the codes, and NaN is written in one way") {
    const operand inf = matrix_of("f16", 1, 1, {0x7c00});
    const operand minus_inf = matrix_of("f16", 1, 1, {0xfc00});
    const operand nan = matrix_of("f16", 1, 1, {0xfe01});
    const operand zero = matrix_of("f16", 1, 1, {0});
    const operand unit = matrix_of("f16", 1, 1, {0x3c00});
    arrangement first;
    first.accumulate_c = true;
    CHECK(product(nan, unit, "sm100.f16")[0] == 0x7fffffffu);
    CHECK(product(nan, unit, "sm100.f16.f16acc")[0] == 0x7fffu);
    CHECK(product(inf, zero, "sm100.f16")[0] == 0x7fffffffu);
    CHECK(product(minus_inf, unit, "sm100.f16")[0] == 0xff800000u);
    CHECK(product(minus_inf, unit, "sm100.f16.f16acc")[0] == 0xfc00u);
    CHECK(product(inf, unit, "sm100.f16", first, {0xff800000u})[0] == 0x7fffffffu);
    CHECK(product(nan, unit, "fp32.fma")[0] == 0x7fffffffu);
    CHECK(product(inf, zero, "exact")[0] == 0x7fffffffu);
    // tf32 drops the bits that make this a NaN.
    const operand payload = matrix_of("tf32", 1, 1, {0x7f800001});
    const operand tf32_unit = matrix_of("tf32", 1, 1, {bits_of(1.0F)});
    CHECK(product(payload, tf32_unit, "sm100.tf32")[0] == 0x7f800000u);
    // A NaN scale poisons zeros as well.
    operand scaled = matrix_of("e2m1", 1, 32, std::vector<std::uint32_t>(32));
    scaled.scaling = scales_e8m0_32;
    scaled.scale_block = 32;
    scaled.scales = {255};
    CHECK(product(scaled, scaled, "sm100.mxf4")[0] == 0x7fffffffu);
    CHECK(product(scaled, scaled, "sm100.mxf8f6f4")[0] == 0x7fffffffu);
    CHECK(product(scaled, scaled, "exact")[0] == 0x7fffffffu);
}

TEST_CASE("K is filled with zeros, whatever the arrangement of rows and columns") {
    const operand a = random_fp8(37, 70, 1);
    const operand b = random_fp8(41, 70, 2);
    const auto whole = product(a, b, "sm100.f8f6f4");
    operand long_a = matrix_of("e4m3", 37, 96, {}), long_b = matrix_of("e4m3", 41, 96, {});
    for (const auto& [from, to] : {std::pair{&a, &long_a}, std::pair{&b, &long_b}}) {
        for (std::size_t r = 0; r < from->rows; ++r) {
            for (std::size_t k = 0; k < 96; ++k) {
                to->codes.push_back(k < 70 ? from->codes[r * 70 + k] : 0u);
            }
        }
    }
    CHECK(product(long_a, long_b, "sm100.f8f6f4") == whole);
    // Every output is a separate dot product.
    const operand row = matrix_of("e4m3", 1, 70, {a.codes.begin() + 70 * 36, a.codes.end()});
    const operand column = matrix_of("e4m3", 1, 70, {b.codes.begin() + 70 * 40, b.codes.end()});
    CHECK(product(row, column, "sm100.f8f6f4")[0] == whole.back());
    // Threads change nothing.
    multiply_control control = plainly();
    control.threads = 3;
    std::uint64_t last = 0;
    control.on_progress = [&](std::uint64_t done, std::uint64_t total) {
        CHECK(done == last + 1);
        CHECK(done <= total);
        last = done;
    };
    CHECK(multiply(a, b, {}, parse_accumulator("sm100.f8f6f4"), {}, control) == whole);
    CHECK(last > 0);
}

TEST_CASE("slices, promotion, alpha and beta are what their words say") {
    const operand a = random_fp8(3, 128, 5);
    const operand b = random_fp8(2, 128, 6);
    const auto part = [](const operand& x, std::size_t first, std::size_t count) {
        operand p = matrix_of("e4m3", x.rows, count, {});
        for (std::size_t r = 0; r < x.rows; ++r) {
            for (std::size_t k = first; k < first + count; ++k) {
                p.codes.push_back(x.codes[r * x.depth + k]);
            }
        }
        return p;
    };
    const auto piece = [&](std::size_t first, std::size_t count, const std::string& model) {
        return product(part(a, first, count), part(b, first, count), model);
    };
    const std::string model = "sm90.wgmma.fp8";
    const auto q = [&](std::size_t i) {
        std::vector<float> values;
        for (const std::uint32_t bits : piece(32 * i, 32, model)) {
            values.push_back(float_from_bits(bits));
        }
        return values;
    };
    const auto q0 = q(0), q1 = q(1), q2 = q(2), q3 = q(3);
    const auto promoted = product(a, b, model + ":promote=32");
    arrangement halves;
    halves.slices = 2;
    const auto sliced = product(a, b, model, halves);
    const auto low = piece(0, 64, model), high = piece(64, 64, model);
    // Chained by hand.
    arrangement first;
    first.accumulate_c = true;
    const auto chained = product(part(a, 64, 64), part(b, 64, 64), model, first, low);
    const auto whole = product(a, b, model);
    arrangement backwards;
    backwards.order = k_order::descending;
    const auto reversed = product(a, b, model + ":promote=32", backwards);
    arrangement scaled;
    scaled.alpha = 3.0F;
    scaled.beta = -0.7F;
    std::vector<std::uint32_t> c(6);
    for (std::size_t i = 0; i < 6; ++i) c[i] = bits_of(1.1F * static_cast<float>(i));
    const auto mixed = product(a, b, model, scaled, c);
    int promotion_shows = 0;
    for (std::size_t i = 0; i < 6; ++i) {
        CHECK(float_from_bits(promoted[i]) == ((q0[i] + q1[i]) + q2[i]) + q3[i]);
        CHECK(float_from_bits(reversed[i]) == ((q3[i] + q2[i]) + q1[i]) + q0[i]);
        CHECK(float_from_bits(sliced[i]) == float_from_bits(low[i]) + float_from_bits(high[i]));
        CHECK(chained[i] == whole[i]);
        CHECK(float_from_bits(mixed[i]) ==
              std::fma(3.0F, float_from_bits(whole[i]), -0.7F * float_from_bits(c[i])));
        promotion_shows += promoted[i] != whole[i] ? 1 : 0;
    }
    CHECK(promotion_shows > 0);
    // Without beta, C is not read.
    CHECK(product(a, b, model, {}, std::vector<std::uint32_t>(6, 0x7fc00000u)) == whole);
    // Tensor scales go into alpha.
    operand twice = a;
    twice.tensor_scale = 2.0F;
    for (std::size_t i = 0; i < 6; ++i) {
        CHECK(float_from_bits(product(twice, b, model)[i]) == 2.0F * float_from_bits(whole[i]));
    }
    // No arrangement changes an exact sum.
    CHECK(product(a, b, "exact", halves) == product(a, b, "exact"));
}

TEST_CASE("the order of promotions and slices, and the fused alpha, are those that are stated") {
    // Ten steps; sums of 24 bits, so that another order changes some bits.
    const operand a = random_fp8(8, 320, 7);
    const operand b = random_fp8(8, 320, 8);
    const std::string model = "sm100.f8f6f4";
    arrangement down;
    down.order = k_order::descending;
    const auto part = [](const operand& x, std::size_t first, std::size_t count) {
        operand p = matrix_of("e4m3", x.rows, count, {});
        for (std::size_t r = 0; r < x.rows; ++r) {
            for (std::size_t k = first; k < first + count; ++k) {
                p.codes.push_back(x.codes[r * x.depth + k]);
            }
        }
        return p;
    };
    // Every output is the float32 sum of those of these parts of k, in this order.
    using range = std::pair<std::size_t, std::size_t>;
    const auto sum_of = [&](std::vector<float> sum, const std::vector<range>& parts) {
        for (const auto& [first, count] : parts) {
            const auto d = product(part(a, first, count), part(b, first, count), model, down);
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += float_from_bits(d[i]);
        }
        std::vector<std::uint32_t> bits;
        for (const float x : sum) bits.push_back(bits_of(x));
        return bits;
    };
    std::vector<std::uint32_t> c;
    std::vector<float> start;
    for (std::size_t i = 0; i < 64; ++i) {
        start.push_back(1000.1F * static_cast<float>(i));
        c.push_back(bits_of(start.back()));
    }
    arrangement promoted = down;
    promoted.accumulate_c = true;
    std::vector<range> parts{{256, 64}, {192, 64}, {128, 64}, {64, 64}, {0, 64}};
    CHECK(product(a, b, model + ":promote=64", promoted, c) == sum_of(start, parts));
    std::reverse(parts.begin(), parts.end());
    CHECK(sum_of(start, parts) != product(a, b, model + ":promote=64", promoted, c));

    // Slices of four, four and two steps: descending inside, the first one first.
    arrangement sliced = down;
    sliced.slices = 3;
    const std::vector<float> zeros(64);
    parts = {{0, 128}, {128, 128}, {256, 64}};
    CHECK(product(a, b, model, sliced) == sum_of(zeros, parts));
    std::reverse(parts.begin(), parts.end());
    CHECK(sum_of(zeros, parts) != product(a, b, model, sliced));

    arrangement scaled;
    scaled.alpha = 0.3F;
    scaled.beta = -0.7F;
    const auto mixed = product(a, b, model, scaled, c);
    const auto whole = product(a, b, model);
    int fused_shows = 0;
    for (std::size_t i = 0; i < 64; ++i) {
        const float sum = float_from_bits(whole[i]), offset = -0.7F * start[i];
        CHECK(float_from_bits(mixed[i]) == std::fma(0.3F, sum, offset));
        const float scaled_sum = 0.3F * sum;
        fused_shows += float_from_bits(mixed[i]) != scaled_sum + offset ? 1 : 0;
    }
    CHECK(fused_shows > 0);
}

TEST_CASE("bf16.fma rounds operands that float32 holds") {
    const operand third = floats(1, 1, {1.0F / 3.0F});
    const operand unit = floats(1, 1, {1.0F});
    CHECK(product(third, unit, "bf16.fma")[0] == 0x3eab0000u);
    CHECK(one(third, unit, "fp32.fma") == 1.0F / 3.0F);
}

TEST_CASE("products that do not fit are refused, and a model that takes them is named") {
    const operand fp8 = random_fp8(2, 32, 1);
    const operand bf16 = matrix_of("bf16", 2, 32, std::vector<std::uint32_t>(64));
    refuses(fp8, fp8, "sm100.f16", "does not support e4m3 x e4m3; sm100.f8f6f4 does");
    refuses(fp8, bf16, "sm100.f16", "fp32.fma does");
    refuses(fp8, random_fp8(2, 31, 1), "sm100.f8f6f4", "32 elements along k and B has 31");
    operand shapeless = fp8;
    shapeless.codes.pop_back();
    refuses(shapeless, fp8, "sm100.f8f6f4", "has 63 codes");
    operand empty = matrix_of("e4m3", 0, 32, {});
    refuses(empty, fp8, "sm100.f8f6f4", "at least one row");
    operand scaled = fp8;
    scaled.scaling = scales_e8m0_32;
    scaled.scale_block = 32;
    refuses(scaled, fp8, "sm100.mxf8f6f4", "has 0 scales");
    scaled.scales = {127, 127};
    CHECK(product(scaled, fp8, "sm100.mxf8f6f4") == product(fp8, fp8, "sm100.f8f6f4"));
    refuses(scaled, fp8, "sm100.f8f6f4", "sm100.mxf8f6f4 does");
    scaled.scale_block = 16;
    refuses(scaled, fp8, "sm100.mxf8f6f4", "blocks of 16");
    operand huge = matrix_of("e4m3", std::size_t{1} << 40, std::size_t{1} << 40, {});
    refuses(huge, fp8, "sm100.f8f6f4", "does not fit memory");
    CHECK_THROWS_AS(product(fp8, fp8, "sm100.f8f6f4", {}, {1, 2, 3}), mx::base::error);
    arrangement none;
    none.slices = 0;
    CHECK_THROWS_AS(product(fp8, fp8, "sm100.f8f6f4", none), mx::base::error);
}

TEST_CASE("conversions of accumulators at their edges") {
    CHECK(f16_from_f32(bits_of(65519.0F)) == 0x7bffu);
    CHECK(f16_from_f32(bits_of(-65520.0F)) == 0xfc00u);
    CHECK(f16_from_f32(bits_of(0x1p-24F)) == 1u);
    CHECK(f16_from_f32(bits_of(-0x1p-25F)) == 0x8000u);
    CHECK(f16_from_f32(bits_of(0x1.8p-24F)) == 2u);
    CHECK(f16_from_f32(0x80000000u) == 0x8000u);
    CHECK(f16_from_f32(0x7fc00000u) == 0x7fffu);
    CHECK(f16_from_f32(0xff800000u) == 0xfc00u);
    const target rz = target_of(conversion::rz_fp32);
    CHECK(round_to(rz, 0xffffffffffffull, 128 - 48, false, zero_sign::kept) == 0x7f7fffffu);
    CHECK(round_to(rz, 1, 128, true, zero_sign::kept) == 0xff800000u);
    CHECK(round_to(rz, 3, -150, false, zero_sign::kept) == 1u);
    CHECK(round_to(rz, 1, -1000, true, zero_sign::kept) == 0x80000000u);
    CHECK(round_to(target_of(conversion::rne_fp32), 0xffffffffffffull, 128 - 48, false,
                   zero_sign::kept) == 0x7f800000u);
}
