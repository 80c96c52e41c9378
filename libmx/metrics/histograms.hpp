// SPDX-License-Identifier: Apache-2.0
// Histograms of codes, scales, block maxima and block spread (`--histograms`). Exact counts.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "libmx/base/archive.hpp"

namespace mx::metrics {

inline constexpr int mantissa_bins = 32;
/// Spread bins: 1/16 octave, from ratio 1 (bin 0) down to below 2^-277, the widest possible ratio.
inline constexpr int spread_bins_per_octave = 16;
inline constexpr int spread_bins = 278 * spread_bins_per_octave;

/// Bin of min/max for magnitudes 0 < min <= max given as float32 bits: bin k holds ratios in
/// (2^(-(k+1)/16), 2^(-k/16)], so 2^(-k/16) is its upper edge. Any two bits give a bin of the
/// histogram.
int spread_bin(std::uint32_t min_bits, std::uint32_t max_bits);
/// Upper edge of a spread bin.
double spread_edge(int bin);

struct histograms {
    std::array<std::uint64_t, 256> codes{};  ///< all codes, poisoned and non-finite ones included
    std::array<std::uint64_t, 256> scales{};
    std::array<std::uint64_t, mantissa_bins> amax_mantissa{};  ///< blocks with finite amax != 0
    std::array<std::uint64_t, spread_bins> spread{};           ///< blocks with finite amax != 0

    void merge(const histograms& other);
    void serialize(base::archive& with);  ///< all counts
};

/// The block properties that the histograms need (see block::block_stats).
struct block_facts {
    std::uint8_t scale_code;
    std::uint32_t amax, x_max, x_min;
};

/// Collects histograms of one panel. Consecutive codes go to different tables, so that equal codes
/// do not cause store-to-load dependencies.
class histogram_tally {
  public:
    void add(const block_facts& b);
    /// Codes of `bits` bits, the same in every call between two flushes; at most 2^31 codes.
    void add_codes(std::span<const std::uint8_t> codes, int bits);
    /// Adds everything to `h` and resets the tables.
    void flush(histograms& h);

  private:
    using table = std::array<std::uint32_t, 256>;
    static constexpr std::size_t tables = 8;
    std::array<table, tables> codes_{};  ///< of single codes
    std::array<table, tables> pairs_{};  ///< of two 4-bit codes: first + 16 * second
    histograms rest_;
};

}  // namespace mx::metrics
