// SPDX-License-Identifier: Apache-2.0
// The figures of arrays that are seen one after another, or by several processes: counts, maxima
// and exact sums, which merge in any order and grouping to the same bits.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libmx/analysis/result.hpp"
#include "libmx/engine/run.hpp"
#include "libmx/metrics/totals.hpp"

namespace mx::analysis {

class statistics {
  public:
    /// Of no array yet, under recipe `r`; results call the tensor `name`.
    statistics(const codec::recipe& r, std::string name);

    /// Adds an array. Its tensor scale, where the recipe has one, is its own. Throws base::error:
    /// usage where it lacks the recipe's axis, input where its values are no real numbers,
    /// cancelled; then nothing was added.
    void update(const engine::tensor_ref& t, const engine::run_control& control);

    /// Adds an array to each of `all`, in one pass over its values.
    static void update(std::span<statistics* const> all, const engine::tensor_ref& t,
                       const engine::run_control& control);

    /// What is known of one array under one recipe.
    struct array_figures {
        metrics::totals totals;  ///< from empty_totals
        std::uint64_t passes = 0, inexact = 0;
        double tensor_scale = std::numeric_limits<double>::quiet_NaN();
    };
    /// Adds such figures of an array, those under its recipe to each of `all`. `spread`: as
    /// spreads_of has it.
    static void add(std::span<statistics* const> all, const io::tensor_info& info, double spread,
                    std::span<const array_figures> figures);

    /// Adds what another one saw. Throws base::error (usage) where the recipes differ.
    void merge(const statistics& other);

    /// The figures of all that was seen, as analyze has them of one tensor. Of several arrays the
    /// shape is the number of elements, dtype and role are OTHER and "other" where they differ, and
    /// tensor_scale and spread_error are undefined.
    result figures() const;

    const codec::recipe& recipe() const { return recipe_; }
    const std::string& name() const { return name_; }

    /// All of it but the shape as numbers. Where the sums of several are added element by element,
    /// and of their maxima the largest are taken, with_numbers gives what merge would: every sum is
    /// a whole number below 2^53 as long as all together saw fewer elements than that and fewer
    /// than 2^20 are added.
    std::vector<double> sums() const;
    std::vector<double> maxima() const;
    /// Throws base::error (usage) for lists of other lengths, and of what sums() does not give.
    static statistics with_numbers(const codec::recipe& r, std::string name,
                                   std::span<const double> sums, std::span<const double> maxima);
    /// Of one array; none of several, and where it is not known.
    const std::optional<tensor::shape>& shape() const { return shape_; }
    void set_shape(std::optional<tensor::shape> s) { shape_ = std::move(s); }

  private:
    codec::recipe recipe_;
    std::string name_;
    metrics::totals totals_;
    std::uint64_t arrays_ = 0, inexact_ = 0, passes_ = 0;
    std::optional<tensor::shape> shape_;
    // Of the arrays, the least and the largest dtype and place in the list of roles.
    struct range {
        int least = 1000, largest = -1;
        void take(const range& other);
    };
    range dtype_, role_;
    double spread_, tensor_scale_;  // of one array; NaN: undefined
};

}  // namespace mx::analysis
