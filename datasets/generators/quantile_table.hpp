// SPDX-License-Identifier: Apache-2.0
// From 32 random bits to one value of a law: the inverse distribution function as a table of
// cubics, each covering an eighth of an octave of tail probability.
//
// Bit 0 of the word is the sign. Bit 31 says from which end the probability of the magnitude is
// counted, and the bits between, with a one appended, are that probability times 2^32. Small
// probabilities therefore keep their relative precision at both ends: magnitudes reach down to the
// 2^-32 quantile (for the normal law 2.9e-10) and up to the one exceeded with probability 2^-32
// (6.34 for the normal law). No libm function is involved: the same word gives the same bits on
// every IEEE machine. The relative error of a value against the exact quantile at its word's
// probability is below 4e-6 (measured: 4e-7, log-normal 3e-6).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "datasets/generators/laws.hpp"
#include "libmx/base/bits.hpp"

namespace mx::synth {

class quantile_table {
  public:
    explicit quantile_table(const law_row& row);

    /// The value that the random `word` stands for.
    float operator()(std::uint32_t word) const {
        // 1 <= w <= 2^31 once rounded to float32: its exponent is the octave, the upper three bits
        // of its mantissa the segment, the others the place inside the segment.
        const auto w = static_cast<std::int32_t>((word & 0x7fffffffu) | 1u);
        const std::uint32_t bits = base::bits_of(static_cast<float>(w));
        const cubic& s = segments_[(bits >> 20) - first_octave + (word >> 31) * per_end];
        const float t = base::float_from_bits((bits & 0x000fffffu) | 0x3f800000u) - 1.0f;
        const float magnitude = s.c[0] + t * (s.c[1] + t * (s.c[2] + t * s.c[3]));
        return base::float_from_bits(base::bits_of(magnitude) ^ (word << 31));
    }

  private:
    struct cubic {
        float c[4];
    };
    static constexpr std::uint32_t first_octave = 127u << 3;
    static constexpr std::uint32_t per_end = 256;  // 31 octaves of 8, one more value, spare room

    static cubic fit(const law_row& row, tail end, int octave, int eighth);

    std::array<cubic, 2 * per_end> segments_;
};

/// The table of `id`, built at first use (a few milliseconds for all laws) and then shared.
const quantile_table& table_of(law id);

}  // namespace mx::synth
