// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/block_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "libmx/codec/block_kernel.hpp"
#include "libmx/metrics/metrics.hpp"
#include "libmx/oracle/number.hpp"

namespace mx::tests {
namespace {

using base::bits_of;

constexpr double sum_tolerance = 1e-6;
constexpr std::size_t block_columns = 8;

// A power of two times an exact integer as a double (of sums far inside double's range).
double scaled(const oracle::integer& n, int exponent) {
    if (n == 0) return 0;
    // 128 leading bits convert with an error far below the tolerance.
    const auto magnitude = oracle::integer(boost::multiprecision::abs(n));
    const int drop = std::max(0, static_cast<int>(boost::multiprecision::msb(magnitude)) - 127);
    const auto lead = static_cast<double>(boost::multiprecision::cpp_int(magnitude >> drop));
    return std::ldexp(n < 0 ? -lead : lead, exponent + drop);
}

bool close(double ours, const oracle::integer& exact, int exponent) {
    const double expected = scaled(exact, exponent);
    return std::abs(ours - expected) <= sum_tolerance * std::abs(expected);
}

bool close(const base::exact_sum& ours, const oracle::integer& exact, int exponent) {
    return close(ours.value(), exact, exponent);
}

// The parts as reported for a tensor of this one block: each close to the exact one, and in sum the
// squared error to the last bit.
void compare_parts(const block::block_stats& got, const oracle::quantized_block& want,
                   const std::function<void(bool, const char*)>& expect) {
    constexpr int tick2 = 2 * oracle::tick_exponent;
    block::segment_stats alone{};
    alone.sum = got.sum;
    alone.part = got.part;
    metrics::totals t;
    t.add(alone);
    const metrics::part_sums parts = metrics::balanced_parts(t);
    expect(close(got.part.clamp_error2, want.sum.clamp_error2, tick2), "clamp part");
    expect(close(got.part.underflow_error2, want.sum.underflow_error2, tick2), "underflow part");
    expect(close(got.part.grid_error2, want.sum.grid_error2, tick2), "grid part");
    expect(close(parts.clamp, want.sum.clamp_error2, tick2), "balanced clamp part");
    expect(close(parts.underflow, want.sum.underflow_error2, tick2), "balanced underflow part");
    expect(close(parts.grid, want.sum.grid_error2, tick2), "balanced grid part");
    base::exact_sum sum = parts.clamp;
    sum.merge(parts.underflow);
    sum.merge(parts.grid);
    expect(sum == t.sum.error2, "sum of the parts");
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
    const auto got = codec::quantize_block(p, x, place, codes, values, true);
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

    constexpr int tick = oracle::tick_exponent;
    expect(close(got.sum.error2, want.sum.error2, 2 * tick), "sum of squared errors");
    expect(close(got.sum.x2, want.sum.x2, 2 * tick), "sum of squares");
    expect(close(got.sum.xd, want.sum.xd, 2 * tick), "sum of products");
    expect(close(got.sum.d2, want.sum.d2, 2 * tick), "sum of squared results");
    // Signed errors may cancel; n double terms no larger than max_error then leave up to n ulps.
    const double floor = 0x1p-50 * static_cast<double>(c.elements) * got.sum.max_error;
    expect(close(got.sum.error, want.sum.error, tick) ||
               std::abs(got.sum.error - scaled(want.sum.error, tick)) <= floor,
           "sum of errors");
    expect(close(got.sum.max_error, want.sum.max_error, tick), "largest error");
    const double most = base::float_from_bits(got.counted_max);
    expect(most == scaled(want.sum.max_x, tick), "largest counted value");
    compare_parts(got, want, expect);
}

}  // namespace mx::tests
