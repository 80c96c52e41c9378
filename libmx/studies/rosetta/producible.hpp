// SPDX-License-Identifier: Apache-2.0
// Which blocks a recipe can have produced, judged by their bytes alone: the possible codes of a
// block's largest element under each scale.
//
// Under floor, for example, an E2M1 block with scale S had its maximum in [4, 8) S, so its largest
// code is 4 or 6; a block whose largest element is 3 was not made by floor. The sets are computed
// by running the recipe over every binade of block maxima, not read from a table.
//
// UE4M3 and UE5M3 have eight scales per binade, so the largest element is 6 unless the scale is
// small or four-over-six made it 4. The ends of the range distinguish dialects: the scale of a
// block of zeros, and the smallest scale.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "libmx/codec/recipe.hpp"

namespace mx::rosetta {

/// The scale code of NaN.
constexpr int nan_code_of(const format::scale_format& f) {
    return f.power_of_two() ? format::e8m0_nan : f.number.nan_code();
}

/// What a block's codes reveal about its maximum.
struct block_top {
    int positive = 0;      ///< largest magnitude code among elements not below zero
    int negative = 0;      ///< the same among the others
    bool has_nan = false;  ///< an element is NaN or Inf by its code
};

/// The magnitude codes of a block's extremes.
block_top top_of(const format::element_format& f, std::span<const std::uint8_t> codes);

/// An interval of block maxima with the same largest code.
struct top_interval {
    int code = 0;        ///< magnitude code of the largest element
    double octaves = 0;  ///< log2 of the largest such maximum over the smallest
};

class producible {
  public:
    /// Throws base::error (usage) for recipes with random numbers, an offset, searched scales, or
    /// float32 scales other than powers of two. Under an outer scale, the sets are the union over
    /// every outer scale for which no intermediate result leaves the normal range of float32.
    explicit producible(const codec::recipe& r);

    /// Whether the recipe can produce a block with this scale code and these extremes. For a NaN
    /// scale, true if some input gives it; a block with NaN elements is not judged (true).
    bool can_be(std::uint8_t scale_code, const block_top& top) const;

    /// The possible magnitude codes of the largest element under `scale_code`, for a maximum of the
    /// given sign; empty if the recipe never chooses that scale.
    const std::bitset<256>& largest(std::uint8_t scale_code, bool negative) const {
        return negative ? negative_[scale_code] : positive_[scale_code];
    }

    /// The maxima under one scale in ascending order, away from the ends of the scale's range. They
    /// cover an octave, and those of the next scale follow. Empty if the sign of the maximum
    /// matters.
    const std::vector<top_interval>& intervals() const { return intervals_; }

    /// The alternatives of four-over-six.
    struct choice {
        int four, six;          ///< largest codes of blocks
        int last_scale_of_six;  ///< beyond it the other scale is out of range
    };
    const std::optional<choice>& alternatives() const { return alternatives_; }

  private:
    template <typename Run>
    void fill(const Run& run);

    const format::scale_format* scale_format_;
    std::vector<top_interval> intervals_;
    std::optional<choice> alternatives_;
    std::array<std::bitset<256>, 256> positive_, negative_;
    bool gives_nan_scale_ = false;
};

}  // namespace mx::rosetta
