// SPDX-License-Identifier: Apache-2.0
// One tensor as a map of its blocks, and one block with its values, scale and codes under every
// scale rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/metrics/row.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/studies/show/block_map.hpp"

namespace mx::show {

/// An element of a block.
struct element {
    std::uint64_t index = 0;  ///< in the tensor, C order
    float stored = 0;         ///< as the file holds it, widened
    float x = 0;              ///< as it was quantized: with the bias of norms, rotated
    double y = 0;             ///< x over the scale, less the offset; NaN without a finite scale
    std::uint8_t code = 0;
    float q = 0;      ///< the number that the code stands for
    float value = 0;  ///< dequantized; of a recipe that rotates, not yet turned back
    bool clamped = false, underflow = false;
    bool largest = false;  ///< q is the largest of its sign

    double error() const { return static_cast<double>(value) - static_cast<double>(x); }
};

/// A block under one member of the scale family.
struct rule_outcome {
    std::size_t recipe = 0;  ///< index into tensor_view::family
    block::block_stats stats{};
    double scale = 0;  ///< all of it, the tensor's included; NaN for a NaN
};

struct block_view {
    std::uint64_t index = 0;
    std::uint64_t first_index = 0;           ///< of its first element in the tensor, C order
    std::vector<std::uint64_t> first, last;  ///< coordinates of its first and last element
    std::uint64_t rows = 1, cols = 1;        ///< extents in elements
    block::block_stats stats{};
    region of;         ///< its figures
    double scale = 0;  ///< all of it; NaN for a NaN
    float offset = 0;
    /// All elements in row-major order; if there are more than most_elements, those with the
    /// largest errors, in the same order.
    std::vector<element> elements;
    std::uint64_t size = 0;           ///< elements of the block
    std::vector<rule_outcome> rules;  ///< as in the family
};

inline constexpr std::size_t most_elements = 1024;

struct show_request : engine::run_request {
    std::size_t worst = 5;               ///< blocks to look into, unless `block` says which
    std::optional<std::uint64_t> block;  ///< index in the tensor's block grid
    /// The largest size of the map in cells.
    std::uint64_t map_rows = map_layout::most_rows, map_columns = map_layout::most_columns;
};

/// A tensor under the only recipe of a request.
struct tensor_view {
    engine::tensor_ref tensor{};
    std::vector<codec::recipe> family;      ///< scale_family of the recipe
    std::vector<analysis::result> results;  ///< of the tensor, by member of the family
    metrics::row normal{};                  ///< of the recipe: policy::figures_on_normal_data
    engine::geometry geometry;
    map_layout layout;
    std::vector<region> cells;  ///< of the map, by row and column
    std::vector<region> bands;  ///< see block_mapper
    std::uint64_t band_lines = 1;
    std::vector<block_view> blocks;  ///< worst first, or the one asked for

    const codec::recipe& recipe() const { return family.front(); }
};

/// Views one tensor in one run. Its figures are those of analysis::analyze; codes and scales are
/// those that convert::quantize_model writes. Throws base::error: input for a tensor that is not
/// numeric or has no elements; usage if the recipe does not fit it or the block does not exist.
tensor_view view_tensor(const engine::tensor_ref& t, const show_request& request,
                        const engine::run_control& control);

/// The records of a view for JSON: one per block, and one of the tensor with its map.
report::record block_record(const tensor_view& v, const block_view& b);
report::record tensor_record(const tensor_view& v);

/// The schema mx.show/2.
report::document_schema show_schema();

}  // namespace mx::show
