// SPDX-License-Identifier: Apache-2.0
// Tensors of the same name in one layer after another.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/analysis/results_table.hpp"

namespace mx::compare {

/// Tensors whose names differ only in the layer number.
struct layer_series {
    std::string file;
    std::string name;  ///< with '*' in the layer's place
    std::string role;
    std::vector<std::size_t> tensors;  ///< indices into the table, layers ascending
};

/// The series of at least two layers, in the order of their first tensors.
std::vector<layer_series> find_series(const analysis::results_table& b);

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
