// SPDX-License-Identifier: Apache-2.0
// The block kernel against the oracle: random and adversarial blocks of every family of recipes.
// Scales, offsets, codes, values and counts to the bit; sums to 1e-6.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/mx/oracle_recipe.hpp"
#include "libmx/oracle/block.hpp"
#include "libmx/quantize/block_kernel.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/block_inputs.hpp"

namespace {

using mx::base::bits_of;
using mx::quantize::recipe;
using mx::tests::block_kind;

constexpr double sum_tolerance = 1e-6;

// Every family of dialect ocp with E8M0 scales: element x rule x rounding x offset, with the
// choices only some have.
std::vector<recipe> all_recipes() {
    std::vector<std::string> integers;
    for (const char* emax : {"0", "log2max", "1"}) {
        for (const char* minimum : {"full", "symmetric"}) {
            integers.push_back(std::string(",int_emax=") + emax + ",int_min=" + minimum);
        }
    }
    std::vector<recipe> out;
    for (const auto& f : mx::format::element_formats) {
        std::vector<std::string> own{""};
        if (!f.floating()) own = integers;
        if (f.floating() && f.mantissa_bits == 0) own = {",ties=up", ",ties=even"};
        for (const auto& rule : mx::scale::scale_rules) {
            if (rule.scale_format != "e8m0" || rule.id == mx::scale::rule_id::stochastic) continue;
            for (const char* round :
                 {"rtne", "away", "zero", "up", "down", "nearest-ties-to-zero", "stochastic,seed=7",
                  "stochastic,random_bits=1", "stochastic,random_bits=9"}) {
                for (const char* offset : {"", ",offset=fp16", ",offset=fp16,range=half"}) {
                    for (const std::string& extra : own) {
                        if (extra.find("ties") == 1 && std::string(round) != "rtne") continue;
                        out.push_back(mx::quantize::parse_recipe(
                            "mxfp8:element=" + std::string(f.name) + ",scale=" +
                            std::string(rule.name) + ",round=" + round + offset + extra));
                    }
                }
            }
        }
    }
    return out;
}

// A power of two times an exact integer as a double (of sums far inside double's range).
double scaled(const mx::oracle::integer& n, int exponent) {
    if (n == 0) return 0;
    // 128 leading bits convert with an error far below the tolerance.
    const auto magnitude = mx::oracle::integer(boost::multiprecision::abs(n));
    const int drop = std::max(0, static_cast<int>(boost::multiprecision::msb(magnitude)) - 127);
    const auto lead = static_cast<double>(boost::multiprecision::cpp_int(magnitude >> drop));
    return std::ldexp(n < 0 ? -lead : lead, exponent + drop);
}

bool close(double ours, const mx::oracle::integer& exact, int exponent) {
    const double expected = scaled(exact, exponent);
    return std::abs(ours - expected) <= sum_tolerance * std::abs(expected);
}

struct comparison {
    std::uint64_t blocks = 0;
    std::uint64_t differences = 0;
    std::string first;

    void expect(bool same, const char* what, block_kind kind, std::uint64_t seed) {
        if (same || differences++ != 0) return;
        first = std::string(what) + " of a block of kind '" + std::string(name_of(kind)) +
                "', seed " + std::to_string(seed);
    }
};

void compare_block(const recipe& r, const mx::oracle::recipe& stated,
                   const mx::oracle::value_list& list, block_kind kind, std::size_t size,
                   std::uint64_t seed, comparison& result) {
    const std::vector<float> x = mx::tests::make_block(kind, *r.element, size, seed);
    const mx::quantize::block_params p = mx::quantize::params_of(r);
    // The block sits somewhere in a tensor of rows of 100 elements, 8 columns wide.
    const mx::quantize::block_place place{seed * 77, seed % 1000, 100, 8};
    std::vector<std::uint8_t> codes(size);
    std::vector<float> values(size);
    const auto got = mx::quantize::quantize_block(p, x, place, codes);
    mx::quantize::dequantize_block(p, got.scale, got.offset, codes, values);

    std::vector<std::uint32_t> draws;
    if (r.round == mx::format::rounding::stochastic) {
        for (std::size_t i = 0; i < size; ++i) {
            const std::uint64_t index = place.first + i / 8 * 100 + i % 8;
            draws.push_back(mx::base::random_u32({r.seed, place.tensor_id}, index));
        }
    }
    const auto want = mx::oracle::quantize_block(stated, list, x, draws);

    const auto expect = [&](bool same, const char* what) { result.expect(same, what, kind, seed); };
    ++result.blocks;
    expect(got.scale_code == want.scale_code, "scale");
    expect(got.offset == want.offset, "offset");
    expect(codes == want.codes, "codes");
    for (std::size_t i = 0; i < size; ++i) {
        const float value = mx::oracle::dequantized_f32(want, i);
        const bool same = bits_of(values[i]) == bits_of(value) ||
                          (std::isnan(values[i]) && std::isnan(value)) ||
                          (values[i] == 0 && value == 0);  // the code has the sign
        expect(same, "value");
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
    expect(got.is.zero == want.zero, "zero block");
    expect(got.is.eligible == want.eligible, "eligible");
    expect(got.is.collapsed == want.collapsed, "collapsed");
    expect(got.is.saturated == want.saturated, "saturated");
    expect(got.is.dead == want.dead, "dead");
    if (w.nan == 0) expect(got.amax == bits_of(want.amax), "amax");

    constexpr int tick = mx::oracle::tick_exponent;
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
}

}  // namespace

TEST_CASE("blocks of every recipe equal the oracle's") {
    constexpr std::size_t sizes[] = {32, 16, 1, 7, 32, 50};
    std::uint64_t seed = 0;
    std::uint64_t blocks = 0;
    for (const recipe& r : all_recipes()) {
        const mx::oracle::recipe stated = mx::app::oracle_recipe(r);
        const auto list = mx::oracle::list_values(*r.element, stated.full_range);
        comparison result;
        for (const block_kind kind : mx::tests::block_kinds) {
            ++seed;
            compare_block(r, stated, list, kind, sizes[seed % 6], seed, result);
        }
        blocks += result.blocks;
        CAPTURE(mx::quantize::to_string(r), result.first);
        CHECK(result.differences == 0);
    }
    CHECK(blocks > 40000);
}
