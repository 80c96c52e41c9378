// SPDX-License-Identifier: Apache-2.0
// The recipes of a sweep: the cartesian product of its axes over its base recipes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/codec/recipe.hpp"

namespace mx::compare {

/// One axis of a sweep: a recipe key and its values.
struct axis {
    std::string key;
    std::vector<std::string> values;
};

/// One combination of the sweep. If it draws random numbers, it comprises several recipes that
/// differ only in their seed.
struct cell {
    codec::recipe recipe;
    std::string name;               ///< canonical; of the first seed
    std::vector<std::size_t> runs;  ///< indices into sweep_plan::recipes, one per seed
};

/// A combination that no format or dialect supports.
struct left_out_cell {
    std::string recipe;  ///< as the sweep spelt it
    std::string reason;
};

struct sweep_plan {
    std::vector<cell> cells;             ///< each behaviour once, in the order of the product
    std::vector<codec::recipe> recipes;  ///< what is to be analyzed, each recipe once
    std::vector<left_out_cell> left_out;
    cell baseline;  ///< what R-MSEs are relative to; its runs are among the recipes
    bool baseline_is_cell = true;
};

struct sweep_request {
    std::vector<std::string> bases;  ///< recipes that the axes are applied to, at least one
    std::vector<axis> axes;          ///< the last one varies fastest
    std::string baseline;            ///< "" for the first cell
    std::uint64_t seeds = 5;         ///< recipes per cell that draws random numbers, at least 1
    std::vector<codec::recipe> more = {};  ///< cells beside the product
};

/// The largest number of cells of a sweep.
inline constexpr std::size_t max_cells = 2048;

/// Whether quantization under `r` draws random numbers.
bool is_random(const codec::recipe& r);

/// Expands a sweep. An axis replaces the value of its key in a base. Throws base::error (usage) for
/// invalid bases or baselines, for values that no recipe has, if no combination remains (with the
/// first reason), and for more than max_cells combinations.
sweep_plan plan_sweep(const sweep_request& request);

}  // namespace mx::compare
