// SPDX-License-Identifier: Apache-2.0
// Histograms of many tensors together, for the figures of a page, in memory that does not grow with
// the number of tensors. Counts are exact and added in the order of the results.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/metrics/histograms.hpp"
#include "libmx/metrics/totals.hpp"
#include "libmx/report/declared.hpp"

namespace mx::analysis {

/// Norm tensors that keep a histogram of their own; of more, the first.
inline constexpr std::size_t most_norm_histograms = 4096;

/// Histograms by role and recipe, and of every norm tensor the mantissas of its block maxima, once
/// for recipes that see the same blocks.
class distributions {
  public:
    distributions() = default;
    explicit distributions(const std::vector<codec::recipe>& recipes);

    /// Adds the contents of `t.distribution` of one tensor under recipe `recipe`.
    void add(const io::tensor_info& info, std::string_view role, std::size_t recipe,
             const metrics::totals& t);

    bool empty() const { return sums_.empty(); }

    /// The member `distributions` of a document, and its schema as #distributions.
    report::record members() const;
    static void declare(report::document_schema& to);

  private:
    struct sum {
        std::string role;
        std::size_t recipe = 0;
        std::uint64_t tensors = 0;
        std::array<std::uint64_t, 256> codes{}, scales{};
        std::array<std::uint64_t, metrics::mantissa_bins> amax_mantissa{};
    };
    struct norm {
        std::string file, tensor;
        std::size_t recipe = 0;
        report::value amax_mantissa;
        std::array<report::value, 3> spread;
    };
    sum& sum_of(std::string_view role, std::size_t recipe);

    std::vector<codec::recipe> recipes_;
    std::vector<bool> first_of_its_blocks_;  // by recipe
    std::vector<sum> sums_;                  // in the order of appearance
    std::vector<norm> norms_;
    std::uint64_t norms_left_out_ = 0;
};

}  // namespace mx::analysis
