// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/block_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "libmx/codec/block_kernel.hpp"
#include "libmx/oracle/number.hpp"

namespace mx::tests {
namespace {

using base::bits_of;

constexpr std::size_t block_columns = 8;

// n * 2^exponent.
base::exact_sum exact(const oracle::integer& n, int exponent) {
    base::exact_sum sum;
    oracle::integer rest = boost::multiprecision::abs(n);
    for (; rest != 0; rest >>= 32, exponent += 32) {
        const auto low = static_cast<std::uint32_t>(oracle::integer(rest & 0xffffffffu));
        sum.add(std::ldexp(n < 0 ? -static_cast<double>(low) : static_cast<double>(low), exponent));
    }
    return sum;
}

// Compares sums of exact numbers, digit for digit and as reported: rounded once.
void compare_sums(const block::exact_totals& sums, const block::block_sums& rounded,
                  const oracle::exact_sums& want,
                  const std::function<void(bool, const char*)>& expect) {
    constexpr int tick = oracle::tick_exponent;
    const auto same = [&](const base::exact_sum& ours, const oracle::integer& exact_one, int unit,
                          const char* what) {
        expect(ours == exact(exact_one, unit), what);
        expect(ours.value() == oracle::nearest_f64(exact_one, unit), what);
    };
    same(sums.x, want.x, tick, "sum of values");
    same(sums.x2, want.x2, 2 * tick, "sum of squares");
    same(sums.xd, want.xd, 2 * tick, "sum of products");
    same(sums.d2, want.d2, 2 * tick, "sum of squared results");
    same(sums.error(), want.error, tick, "sum of errors");
    same(sums.error2(), want.error2, 2 * tick, "sum of squared errors");
    same(sums.clamp, want.clamp_error2, 2 * tick, "clamp part");
    same(sums.underflow, want.underflow_error2, 2 * tick, "underflow part");
    same(sums.grid(), want.grid_error2, 2 * tick, "grid part");
    expect(rounded.x2 == sums.x2.value() && rounded.xd == sums.xd.value() &&
               rounded.d2 == sums.d2.value() && rounded.error == sums.error().value() &&
               rounded.error2 == sums.error2().value(),
           "sums of a block");
}

bool same_float(float a, float b) {
    return bits_of(a) == bits_of(b) || (std::isnan(a) && std::isnan(b));
}

// The block; microxcaling-bf16 is about tensors of bfloat16.
std::vector<float> input_of(const codec::recipe& r, block_kind kind, std::size_t size,
                            std::uint64_t seed) {
    std::vector<float> x = make_block(kind, *r.element, size, seed);
    if (r.by->id != codec::dialect_id::microxcaling_bf16) return x;
    for (float& v : x) v = oracle::to(oracle::bf16, v);
    return x;
}

// The columns that systems-scaling bumps when the row is this block and a louder one.
std::vector<bool> bumped_columns_of(const codec::recipe& r, const std::vector<float>& x) {
    const bool bumps = mx::codec::bumps_positions(r);
    if (!bumps) return {};
    std::vector<float> row = x;
    for (const float v : x) row.push_back(v * 1.5f);
    return oracle::bumped_columns(row, block_columns);
}

oracle::block_context context_of(const codec::recipe& r, const codec::block_place& place,
                                 const std::vector<bool>& bumped, std::vector<std::uint32_t>& draws,
                                 std::size_t size) {
    if (r.round == format::rounding::stochastic) {
        for (std::size_t i = 0; i < size; ++i) {
            const std::uint64_t index =
                place.first + i / block_columns * place.row_stride + i % block_columns;
            draws.push_back(base::random_u32({r.seed, place.tensor_id}, index));
        }
    }
    return {draws, base::random_u32({r.seed, ~place.tensor_id}, place.first), bumped,
            block_columns};
}

}  // namespace

void comparison::expect(bool same, const std::string& what, block_kind kind, std::uint64_t seed) {
    if (same || differences++ != 0) return;
    first = what + " of a block of kind '" + std::string(name_of(kind)) + "', seed " +
            std::to_string(seed);
}

void compare_block(const codec::recipe& r, const oracle::recipe& stated,
                   const oracle::value_list& list, block_kind kind, std::size_t size,
                   std::uint64_t seed, float tensor_amax, comparison& result) {
    const std::vector<float> x = input_of(r, kind, size, seed);
    codec::block_params p = codec::params_of(r, {bits_of(tensor_amax)});
    if (p.outer_areas) p.tensor = codec::outer_scale(p.outer, tensor_amax);
    // The block sits somewhere in a tensor of rows of 100 elements, 8 columns wide.
    codec::block_place place{seed * 77, seed % 1000, 100, 8, nullptr};
    const std::vector<bool> bumped = bumped_columns_of(r, x);
    const std::vector<std::uint8_t> bumps(bumped.begin(), bumped.end());
    if (!bumps.empty()) place.bump = bumps.data();
    std::vector<std::uint8_t> codes(size);
    std::vector<float> values(size);
    block::exact_totals sums;
    const auto got = codec::measure_block(p, x, place, codes, values, &sums, true);
    std::vector<std::uint32_t> draws;
    oracle::recipe here = stated;
    here.block_cols = block_columns;
    const auto want =
        oracle::quantize_block_in(here, list, x, context_of(r, place, bumped, draws, size));

    const auto expect = [&](bool same, const char* what) { result.expect(same, what, kind, seed); };
    ++result.blocks;
    if (want.scale_code >= 0) expect(got.scale_code == want.scale_code, "scale");
    if (want.scale_code < 255) expect(same_float(got.scale, want.scale), "scale value");
    expect(got.offset == want.offset, "offset");
    for (std::size_t i = 0; i < size; ++i) {
        if (want.coded[i]) expect(codes[i] == want.codes[i], "code");
        const float value = oracle::dequantized_f32(want, i);
        const bool zeros = values[i] == 0 && value == 0;  // ocp: the code has the sign
        expect(same_float(values[i], value) || (want.values.empty() && zeros), "value");
    }
    const auto& c = got.count;
    const auto& w = want.count;
    expect(c.elements == w.elements, "elements");
    expect(c.nan == w.nan && c.inf == w.inf, "nan and inf");
    expect(c.poisoned == w.poisoned, "poisoned");
    expect(c.nonzero == w.nonzero, "nonzero");
    expect(c.overflow == w.overflow, "overflow");
    expect(c.clamp == w.clamp, "clamp");
    expect(c.top_code == w.top_code, "top code");
    expect(c.underflow == w.underflow, "underflow");
    expect(c.subnormal == w.subnormal, "subnormal");
    expect(c.dequant_overflow == w.dequant_overflow, "overflow of d");
    result.dequant_overflow += w.dequant_overflow;
    expect(got.is.zero == want.zero, "zero block");
    expect(got.is.eligible == want.eligible, "eligible");
    expect(got.is.collapsed == want.collapsed, "collapsed");
    expect(got.is.saturated == want.saturated, "saturated");
    expect(got.is.dead == want.dead, "dead");
    if (w.nan == 0) expect(got.amax == bits_of(want.amax), "amax");

    compare_sums(sums, got.sum, want.sum, expect);
    const auto rounded = [](const oracle::integer& n) {
        return oracle::nearest_f64(n, oracle::tick_exponent);
    };
    expect(got.sum.max_error == rounded(want.sum.max_error), "largest error");
    expect(base::float_from_bits(got.counted_max) == rounded(want.sum.max_x),
           "largest counted value");
}

}  // namespace mx::tests
