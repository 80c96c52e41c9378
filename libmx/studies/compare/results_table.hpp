// SPDX-License-Identifier: Apache-2.0
// The results of a sweep as a table: every recipe on every tensor, phase by phase.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/analysis/result_list.hpp"

namespace mx::compare {

/// A rate that is pooled over tensors, and its denominator.
struct pooled_rate {
    enum class whole : std::uint8_t { elements, blocks, squared_error };
    std::string_view name;
    whole of;
    double analysis::result::*figure;
};

/// The rates that a ranking pools besides errors and bits.
inline constexpr std::array pooled_rates{
    pooled_rate{"overflow_rate", pooled_rate::whole::elements, &analysis::result::overflow_rate},
    pooled_rate{"clamp_rate", pooled_rate::whole::elements, &analysis::result::clamp_rate},
    pooled_rate{"underflow_rate", pooled_rate::whole::elements, &analysis::result::underflow_rate},
    pooled_rate{"saturated_block_rate", pooled_rate::whole::blocks,
                &analysis::result::saturated_block_rate},
    pooled_rate{"collapsed_block_rate", pooled_rate::whole::blocks,
                &analysis::result::collapsed_block_rate},
    pooled_rate{"clamp_error_share", pooled_rate::whole::squared_error,
                &analysis::result::clamp_error_share},
    pooled_rate{"underflow_error_share", pooled_rate::whole::squared_error,
                &analysis::result::underflow_error_share},
    pooled_rate{"grid_error_share", pooled_rate::whole::squared_error,
                &analysis::result::grid_error_share},
    pooled_rate{"regret_share", pooled_rate::whole::squared_error, &analysis::result::regret_share},
};

/// The index in pooled_rates of a rate that must exist.
constexpr std::size_t rate_index(std::string_view name) {
    std::size_t i = 0;
    while (pooled_rates[i].name != name) ++i;
    return i;
}

struct tensor_row {
    /// The position of a result: the index of a list of the table, and its index in that list.
    struct place {
        static constexpr std::uint32_t nowhere = ~std::uint32_t{0};
        std::uint32_t list = nowhere;
        std::uint32_t index = 0;
    };
    std::shared_ptr<const analysis::tensor_identity> of;
    std::vector<place> at;  ///< by run and phase, see results_table::of; nowhere: left out
};

struct results_table {
    std::size_t runs = 0;
    std::size_t phases = 1;
    std::vector<tensor_row> tensors;  ///< in the order of the files
    std::vector<analysis::result_list> lists = {};

    /// A result without elements or figures if the tensor was left out.
    analysis::result of(std::size_t tensor, std::size_t run, std::size_t phase = 0) const;
    /// The results of a tensor under the first factor, by run, without those left out.
    std::vector<analysis::result> all_of(std::size_t tensor) const;
};

/// Arranges the results of the recipes named `runs` under `phases` factors. Ignores results of
/// other recipes.
results_table arrange(const analysis::result_list& results, const std::vector<std::string>& runs,
                      std::size_t phases);

/// Tensors whose names differ only in the layer number.
struct layer_series {
    std::string file;
    std::string name;  ///< with '*' in the layer's place
    std::string role;
    std::vector<std::size_t> tensors;  ///< indices into the table, layers ascending
};

/// The series of at least two layers, in the order of their first tensors.
std::vector<layer_series> find_series(const results_table& b);

/// A figure of every layer of a series; a mean over the seeds of a cell.
struct series_figure {
    std::string_view name;  ///< as in the records
    std::string_view type;  ///< report::member_type::type of the list
    double analysis::result::*figure;
};
inline constexpr std::array series_figures{
    series_figure{"rmse", "[amount?]", &analysis::result::rmse},
    series_figure{"nrmse", "[amount?]", &analysis::result::nrmse},
    series_figure{"sqnr_db", "[number?]", &analysis::result::sqnr_db},
    series_figure{"overflow_rate", "[share?]", &analysis::result::overflow_rate},
    series_figure{"clamp_rate", "[share?]", &analysis::result::clamp_rate},
    series_figure{"underflow_rate", "[share?]", &analysis::result::underflow_rate},
};

}  // namespace mx::compare
