// SPDX-License-Identifier: Apache-2.0
// How often each largest code occurs, compared with a recipe's expected frequencies. A recipe that
// can produce every block is still unlikely if a code that it uses often hardly occurs.
#pragma once

#include <cstdint>
#include <vector>

#include "libmx/studies/rosetta/producible.hpp"

namespace mx::rosetta {

/// Number of blocks by scale code and by the magnitude code of their largest element. Blocks of
/// zeros, with NaN codes or with scales near the ends of E8M0's range are not counted.
class top_counts {
  public:
    explicit top_counts(const format::element_format& f);
    void add(std::uint8_t scale_code, const block_top& top);
    void merge(const top_counts& other);
    /// Number of blocks with this largest code and at most this scale.
    std::uint64_t with(int magnitude, int last_scale = 255) const;
    std::uint64_t at(int scale_code, int magnitude) const {
        return blocks_[static_cast<std::size_t>(scale_code) * codes_ +
                       static_cast<std::size_t>(magnitude)];
    }

  private:
    std::size_t codes_;
    std::vector<std::uint64_t> blocks_;
};

/// A largest code: the number of blocks that have it, and the least number expected if the recipe
/// made them and the logarithms of a tensor's block maxima have a unimodal density. Between two
/// intervals of maxima such a density is nowhere below the smaller of their densities. For
/// four-over-six: the least number if it chooses each of its two scales for 1/16 of the blocks for
/// which both are in range.
/// for which both are in range.
struct top_frequency {
    int code = 0;
    double least = 0;
    std::uint64_t found = 0;
};

/// The magnitude of the code.
double value_of_top(const format::element_format& f, const top_frequency& t);

/// By interval of the recipe, in order, or by alternative; empty if it has none.
std::vector<top_frequency> frequencies_of(const producible& recipe, const top_counts& counts);

/// The code that is the strongest evidence against the recipe; nullptr if there is none. Counts as
/// evidence if so few blocks have a probability below 1e-6 (Chernoff's bound for a Poisson count)
/// even if only two thirds of `least` were expected.
const top_frequency* evidence_against(const std::vector<top_frequency>& all);

}  // namespace mx::rosetta
