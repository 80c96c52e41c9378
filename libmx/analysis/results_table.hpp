// SPDX-License-Identifier: Apache-2.0
// Results as a table: every recipe on every tensor, factor by factor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "libmx/analysis/result_list.hpp"
#include "libmx/base/text_tables.hpp"

namespace mx::analysis {

/// Results by tensor (a name in a file) and recipe. Those of a phase sweep have a place for each
/// factor, too.
class results_table {
  public:
    struct row;

    /// Takes every recipe, in the order of their first results, under the first factor.
    results_table() = default;
    /// Takes results under these recipes and the first `phases` factors alone.
    explicit results_table(std::span<const codec::recipe> recipes, std::size_t phases = 1);

    /// Adds results. Of several of one place the first with a figure counts; returns how many
    /// more with a figure there were.
    std::size_t add(const result_list& results);

    std::vector<named_recipe> recipes;  ///< the columns
    std::vector<row> tensors;           ///< in the order of the results

    std::size_t phases() const { return phases_; }
    /// The index of a tensor.
    std::optional<std::size_t> find(std::string_view file, std::string_view tensor) const;
    /// The index of a recipe, by its canonical spelling.
    std::optional<std::size_t> find(std::string_view recipe) const;
    /// Whether the tensor has a result there. `tensor` may be beyond the last.
    bool has(std::size_t tensor, std::size_t recipe, std::size_t phase = 0) const;
    /// That result; without elements and figures if there is none.
    result of(std::size_t tensor, std::size_t recipe, std::size_t phase = 0) const;
    /// The first of the results of a tensor, by recipe and factor.
    result first_of(std::size_t tensor) const;
    /// The results of a tensor under the first factor, by recipe.
    std::vector<result> all_of(std::size_t tensor) const;

  private:
    struct place {
        static constexpr std::uint32_t nowhere = ~std::uint32_t{0};
        std::uint32_t list = nowhere;
        std::uint32_t index = 0;  // in that list
    };
    std::optional<std::size_t> column_for(const named_recipe& r);
    std::size_t row_for(const result& r);

    std::size_t phases_ = 1;
    bool all_recipes_ = true;
    std::vector<result_list> lists_;
    base::text_map<std::size_t> columns_;
    // By file and tensor, of the rows' identities.
    std::map<std::pair<std::string_view, std::string_view>, std::size_t> index_;
};

struct results_table::row {
    std::shared_ptr<const tensor_identity> of;

  private:
    friend class results_table;
    std::vector<place> at_;  // by recipe and phase; those beyond its end are nowhere
};

}  // namespace mx::analysis
