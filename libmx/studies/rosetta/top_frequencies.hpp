// SPDX-License-Identifier: Apache-2.0
// How often each largest code occurs, against what a recipe would leave: a recipe that can make
// every block is unlikely all the same when a code that it uses often is hardly there.
#pragma once

#include <cstdint>
#include <vector>

#include "libmx/studies/rosetta/producible.hpp"

namespace mx::rosetta {

/// Blocks by scale code and by the magnitude code of their largest element. Blocks of zeros, with
/// NaN codes or with scales near the ends of E8M0's range are not counted.
class top_counts {
  public:
    explicit top_counts(const format::element_format& f);
    void add(std::uint8_t scale_code, const block_top& top);
    void merge(const top_counts& other);
    /// Blocks with this largest code and at most this scale.
    std::uint64_t with(int magnitude, int last_scale = 255) const;
    std::uint64_t at(int scale_code, int magnitude) const {
        return blocks_[static_cast<std::size_t>(scale_code) * codes_ +
                       static_cast<std::size_t>(magnitude)];
    }

  private:
    std::size_t codes_;
    std::vector<std::uint64_t> blocks_;
};

/// A largest code: blocks that have it, and how many there are at the least if the recipe made them
/// and the logarithms of a tensor's block maxima have a density with a single peak. Between two
/// intervals of maxima such a density is nowhere below the smaller of their densities. Of
/// four-over-six: at the least if it chooses each of its two scales for one block in 16 of those
/// for which both are in range.
struct top_frequency {
    int code = 0;
    double least = 0;
    std::uint64_t found = 0;
};

/// The magnitude that the code stands for.
double value_of_top(const format::element_format& f, const top_frequency& t);

/// By interval of the recipe, in their order, or by alternative; empty where it has none.
std::vector<top_frequency> frequencies_of(const producible& recipe, const top_counts& counts);

/// The code that speaks most against the recipe; nullptr where none does. One does when so few
/// blocks have a chance below 1e-6 (Chernoff's bound for a Poisson count) even if only two thirds
/// of `least` were to be expected.
const top_frequency* evidence_against(const std::vector<top_frequency>& all);

}  // namespace mx::rosetta
