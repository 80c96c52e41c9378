// SPDX-License-Identifier: Apache-2.0
// Figures layer by layer: tensors of one kind, in the order of their layers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/studies/compare/board.hpp"
#include "libmx/studies/compare/cells.hpp"

namespace mx::compare {

/// Tensors whose names differ in the number of their layer only.
struct layer_series {
    std::string file;
    std::string name;  ///< with '*' in the layer's place
    std::string role;
    std::vector<std::size_t> tensors;  ///< indices into the board, layers ascending
};

/// The series of two layers and more, in the order of their first tensors.
std::vector<layer_series> find_series(const board& b);

/// What a series says of every layer; means over the seeds of a cell.
struct series_figure {
    std::string_view name;  ///< as in the records
    double analysis::result::*figure;
};
inline constexpr std::array series_figures{
    series_figure{"rmse", &analysis::result::rmse},
    series_figure{"nrmse", &analysis::result::nrmse},
    series_figure{"sqnr_db", &analysis::result::sqnr_db},
    series_figure{"overflow_rate", &analysis::result::overflow_rate},
    series_figure{"clamp_rate", &analysis::result::clamp_rate},
    series_figure{"underflow_rate", &analysis::result::underflow_rate},
};

}  // namespace mx::compare
