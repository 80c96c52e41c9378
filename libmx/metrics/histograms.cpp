// SPDX-License-Identifier: Apache-2.0
#include "libmx/metrics/histograms.hpp"

#include <cmath>

#include "libmx/base/bits.hpp"

namespace mx::metrics {
namespace {

// 2^(-k/16) for k = 0..15 as correctly rounded doubles, so that bins are the same everywhere.
constexpr std::array<double, spread_bins_per_octave> edges{
    1.0,
    0x1.ea4afa2a490dap-1,
    0x1.d5818dcfba487p-1,
    0x1.c199bdd85529cp-1,
    0x1.ae89f995ad3adp-1,
    0x1.9c49182a3f09p-1,
    0x1.8ace5422aa0dbp-1,
    0x1.7a11473eb0187p-1,
    0x1.6a09e667f3bcdp-1,
    0x1.5ab07dd485429p-1,
    0x1.4bfdad5362a27p-1,
    0x1.3dea64c123422p-1,
    0x1.306fe0a31b715p-1,
    0x1.2387a6e756238p-1,
    0x1.172b83c7d517bp-1,
    0x1.0b5586cf9890fp-1,
};

}  // namespace

int spread_bin(std::uint32_t min_bits, std::uint32_t max_bits) {
    const double ratio = static_cast<double>(base::float_from_bits(min_bits)) /
                         static_cast<double>(base::float_from_bits(max_bits));
    int exponent = 0;
    // ratio = m * 2^exponent with m in (1/2, 1]: frexp gives [1/2, 1), so a power of two moves up.
    double m = std::frexp(ratio, &exponent);
    if (m == 0.5) {
        m = 1.0;
        --exponent;
    }
    int k = 0;
    while (k + 1 < spread_bins_per_octave && m <= edges[static_cast<std::size_t>(k) + 1]) ++k;
    return -exponent * spread_bins_per_octave + k;
}

double spread_edge(int bin) {
    const int octave = bin / spread_bins_per_octave;
    return std::ldexp(edges[static_cast<std::size_t>(bin % spread_bins_per_octave)], -octave);
}

void histograms::add(const block_facts& b, std::span<const std::uint8_t> block_codes) {
    for (const std::uint8_t c : block_codes) ++codes[c];
    ++scales[b.scale_code];
    if (b.x_max >= base::f32_infinity) return;
    if (b.amax != 0) {
        const std::uint32_t significand = base::decompose(b.amax).significand;
        ++amax_mantissa[(significand >> 18) & (mantissa_bins - 1)];
    }
    if (b.x_max != 0) ++spread[static_cast<std::size_t>(spread_bin(b.x_min, b.x_max))];
}

void histograms::merge(const histograms& other) {
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] += other.codes[i];
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] += other.scales[i];
    for (std::size_t i = 0; i < amax_mantissa.size(); ++i) {
        amax_mantissa[i] += other.amax_mantissa[i];
    }
    for (std::size_t i = 0; i < spread.size(); ++i) spread[i] += other.spread[i];
}

}  // namespace mx::metrics
