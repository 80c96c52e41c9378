// SPDX-License-Identifier: Apache-2.0
// A matrix in memory under a list of recipes: `analyze` without files, for benchmarks, tests and
// callers whose data is already there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/metrics/histograms.hpp"
#include "libmx/metrics/totals.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::analysis {

/// Stored numbers in C order. `data` is aligned to the element's size and holds rows * cols of
/// them; the type is f32, bf16 or f16 (codec::is_stored).
struct matrix {
    tensor::dtype type = tensor::dtype::f32;
    const std::byte* data = nullptr;
    std::uint64_t rows = 0;
    std::uint64_t cols = 0;
    std::string_view name;  ///< keys the draws of stochastic rounding
};

/// What a matrix becomes under one recipe.
struct matrix_totals {
    metrics::totals totals;  ///< `distribution` points to the histograms, when there are any
    std::unique_ptr<metrics::histograms> histograms;
};

/// The totals of every recipe, in order, by the driver and threads that `control` says; with the
/// parts of the squared error where `decompose` says so. Panels, segments and sums are those of
/// `analyze` over a tensor of this shape.
std::vector<matrix_totals> analyze_matrix(const matrix& m, std::span<const codec::recipe> recipes,
                                          bool histograms, const engine::run_control& control,
                                          bool decompose = false);

}  // namespace mx::analysis
