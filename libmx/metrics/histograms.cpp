// SPDX-License-Identifier: Apache-2.0
#include "libmx/metrics/histograms.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "libmx/base/bits.hpp"

namespace mx::metrics {
namespace {

// 2^(-k/16) for k = 0..16 as correctly rounded doubles, so that bins are the same on every machine.
constexpr std::array<double, spread_bins_per_octave + 1> edges{
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
    0.5,
};

// By the leading five bits of a mantissa: the bin of the upper end of that interval. The interval
// lies in this bin or the next, since edges are more than 1/64 apart.
constexpr std::array<std::uint8_t, 32> first_guess = [] {
    std::array<std::uint8_t, 32> guess{};
    for (std::size_t i = 0; i < guess.size(); ++i) {
        const double end = 0.5 + static_cast<double>(i + 1) / 64;
        std::size_t k = 0;
        while (end <= edges[k + 1]) ++k;
        guess[i] = static_cast<std::uint8_t>(k);
    }
    return guess;
}();

}  // namespace

int spread_bin(std::uint32_t min_bits, std::uint32_t max_bits) {
    const double ratio = static_cast<double>(base::float_from_bits(min_bits)) /
                         static_cast<double>(base::float_from_bits(max_bits));
    // ratio = m * 2^exponent with m in (1/2, 1].
    constexpr std::uint64_t mantissa_mask = (std::uint64_t{1} << 52) - 1;
    const std::uint64_t bits = base::bits_of(ratio);
    const std::uint64_t mantissa = bits & mantissa_mask;
    const int exponent = static_cast<int>(bits >> 52) - 1023 + (mantissa != 0 ? 1 : 0);
    int bin = -exponent * spread_bins_per_octave;
    if (mantissa != 0) {
        const double m = base::double_from_bits(mantissa | std::uint64_t{1022} << 52);
        const std::size_t k = first_guess[mantissa >> 47];
        bin += static_cast<int>(k) + (m <= edges[k + 1] ? 1 : 0);
    }
    return std::clamp(bin, 0, spread_bins - 1);
}

double spread_edge(int bin) {
    const int octave = bin / spread_bins_per_octave;
    return std::ldexp(edges[static_cast<std::size_t>(bin % spread_bins_per_octave)], -octave);
}

void histograms::merge(const histograms& other) {
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] += other.codes[i];
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] += other.scales[i];
    for (std::size_t i = 0; i < amax_mantissa.size(); ++i) {
        amax_mantissa[i] += other.amax_mantissa[i];
    }
    for (std::size_t i = 0; i < spread.size(); ++i) spread[i] += other.spread[i];
}

void histogram_tally::add(const block_facts& b) {
    ++rest_.scales[b.scale_code];
    if (b.x_max >= base::f32_infinity) return;
    if (b.amax != 0) {
        const std::uint32_t significand = base::decompose(b.amax).significand;
        ++rest_.amax_mantissa[(significand >> 18) & (mantissa_bins - 1)];
    }
    if (b.x_max != 0) ++rest_.spread[static_cast<std::size_t>(spread_bin(b.x_min, b.x_max))];
}

void histogram_tally::add_codes(std::span<const std::uint8_t> codes, int bits) {
    std::size_t i = 0;
    const auto word = [&](std::size_t at) {
        std::uint64_t w;
        std::memcpy(&w, codes.data() + at, sizeof w);
        return w;
    };
    const auto count = [](std::array<table, tables>& to, std::uint64_t w) {
        for (std::size_t t = 0; t < tables; ++t) ++to[t][(w >> (8 * t)) & 0xff];
    };
    if (bits <= 4) {
        for (; i + 16 <= codes.size(); i += 16) count(pairs_, word(i) | word(i + 8) << 4);
    }
    for (; i + 8 <= codes.size(); i += 8) count(codes_, word(i));
    for (; i < codes.size(); ++i) ++codes_[0][codes[i]];
}

void histogram_tally::flush(histograms& h) {
    for (std::size_t t = 0; t < tables; ++t) {
        for (std::size_t code = 0; code < 256; ++code) {
            rest_.codes[code] += codes_[t][code];
            const std::uint32_t n = pairs_[t][code];
            rest_.codes[code & 15] += n;
            rest_.codes[code >> 4] += n;
        }
    }
    h.merge(rest_);
    *this = {};
}

void histograms::serialize(base::archive& with) {
    with.add(std::span(codes));
    with.add(std::span(scales));
    with.add(std::span(amax_mantissa));
    with.add(std::span(spread));
}

}  // namespace mx::metrics
