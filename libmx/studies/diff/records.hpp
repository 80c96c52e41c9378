// SPDX-License-Identifier: Apache-2.0
// Figures of a comparison as members of records. Undefined is null: a share of nothing, a relative
// error against zeros, a clamp zone that there is not.
#pragma once

#include <vector>

#include "libmx/report/record.hpp"
#include "libmx/studies/diff/figures.hpp"

namespace mx::diff {

/// A tensor (or several together) under one recipe.
struct compared_tensor {
    std::vector<value_figures> values;  ///< one fewer than dumps
    code_figures codes;

    compared_tensor() = default;
    explicit compared_tensor(std::size_t dumps)
        : values(dumps == 0 ? 0 : dumps - 1), codes(dumps) {}
};

/// Adds the figures of dump `pair` against the next one: of values, of scales and codes, and of
/// each of the two by itself (members that end in _a and _b).
void add_pair(report::record& r, const compared_tensor& t, std::size_t pair);

/// Adds one list per figure with a value per dump. What compares dump k with the one before has
/// null for the first; `oscillation` has null at both ends.
void add_series(report::record& r, const compared_tensor& t);

}  // namespace mx::diff
