// SPDX-License-Identifier: Apache-2.0
// Determines from a block's smallest and largest magnitudes, without quantizing it, whether every
// element takes the largest code.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "libmx/base/bits.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/format/decode.hpp"

namespace mx::engine {

/// The values of |y| = |x| / S, S the block's scale, that are encoded as the largest code of one
/// sign.
struct saturation_threshold {
    double at = 0;           ///< they begin here
    bool including = false;  ///< and this value is one of them
    double largest = 0;      ///< what the code stands for; |y| beyond it overflows

    bool takes_largest(double y) const { return y > at || (including && y == at); }
    bool overflows(double y) const { return y > largest; }
};

/// Where blocks overflow, in units of 2^n with 2^(n-1) <= the block's maximum < 2^n (for E4M3 under
/// floor: above 0.84375 every element becomes 0.875, and above 0.875 it overflows).
struct saturation_zone {
    double from = 0;         ///< a block whose magnitudes all lie above this, and whose maximum
                             ///< overflows, saturates
    bool including = false;  ///< as in saturation_threshold
    double to = 0;           ///< block maxima up to here overflow
    double becomes = 0;      ///< what every element turns into; each overflows beyond it
};

/// Magnitudes of the elements of a block as float32 bits, 0 if there are none.
struct block_extremes {
    std::uint32_t least_positive = 0, least_negative = 0;  ///< of those that are not zero
    std::uint32_t largest = 0;
};

block_extremes extremes_of(std::span<const float> x);

/// Certain verdicts on a block; stochastic rounding may have the same effect on other blocks.
struct block_verdict {
    bool overflows = false;  ///< every non-zero element lies beyond the largest of its sign
    bool saturates = false;  ///< every non-zero element takes the largest code of its sign
};

/// Judges blocks under one recipe. Thresholds are computed with the encoder.
class block_judge {
  public:
    /// nullopt if a block's smallest and largest magnitudes are not sufficient: with an offset,
    /// with scales that are not powers of two or are random, and for dialects with their own
    /// arithmetic. Blocks are judged after the recipe's transform.
    static std::optional<block_judge> of(const codec::recipe& r);

    /// Both false for a block of zeros and for one without a finite scale.
    block_verdict judge(const block_extremes& block) const;

    /// Whether the block with this scale code can be closer to saturation than `nearness`. Cheaper
    /// than nearness(); call it only if magnitudes are sufficient.
    bool may_be_nearer(std::uint32_t least, int scale_code, double nearness) const {
        // A little less than the product covers the rounding of both sides.
        const double y = static_cast<double>(base::float_from_bits(least)) *
                         base::exact_pow2(format::e8m0_bias - scale_code);
        return !(y < nearness * positive_.at * (1 - 0x1p-40));
    }
    /// How near the block is to saturating: its smallest magnitude over the one from which on all
    /// its elements would take the largest code, at most 1. 0 for a block of zeros.
    double nearness(const block_extremes& block) const;

    /// Whether all magnitudes from `least` to `largest` (not 0, float32 bits, of either sign) get
    /// one magnitude code under the scale with code `scale_code`: the block saturates, dies or
    /// collapses as a whole. Asked only where magnitudes decide that.
    bool one_code(std::uint32_t least, std::uint32_t largest, int scale_code) const {
        // Most blocks are told by exponents alone: `least` lies below the power of two one octave
        // below that of `largest`, and the codes of these two powers differ.
        const int octaves = static_cast<int>(largest >> 23) - static_cast<int>(least >> 23);
        const int power = static_cast<int>(largest >> 23) - scale_code - lowest_power;
        if (octaves >= 2 && power >= 0 && power < 64 && (steps_ >> power & 1) != 0) return false;
        return same_code(least, largest, scale_code);
    }
    /// Whether magnitudes decide the codes: no random rounding, no difference between the signs.
    bool magnitudes_decide() const;

    /// Whether the largest codes of the two signs differ, so that block_extremes must tell them
    /// apart; otherwise all magnitudes may be given as positive.
    bool signs_matter() const;

    /// None where no block maximum overflows.
    std::optional<saturation_zone> zone() const { return zone_; }

    const saturation_threshold& positive() const { return positive_; }
    const saturation_threshold& negative() const { return negative_; }

  private:
    explicit block_judge(const codec::recipe& r);
    std::optional<int> scale_exponent(std::uint32_t amax) const;
    std::uint32_t code_of(std::uint32_t x, int scale_code) const;
    bool same_code(std::uint32_t least, std::uint32_t largest, int scale_code) const;

    static constexpr int lowest_power = -32;
    codec::block_params params_;
    std::uint64_t steps_ = 0;  // by power of two from 2^lowest_power on: its half has another code
    saturation_threshold positive_, negative_;
    std::optional<saturation_zone> zone_;
};

}  // namespace mx::engine
