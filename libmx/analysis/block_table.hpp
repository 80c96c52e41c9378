// SPDX-License-Identifier: Apache-2.0
// `--blocks OUT.h5`: one array per fact of a block, in the shape of the block grid.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "libmx/block/block_stats.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::analysis {

/// Arrays of a block table per tensor and recipe.
inline constexpr std::size_t block_array_count = 9;

/// Their names and types, in order.
std::vector<io::planned_array> block_arrays(const std::string& group, const tensor::shape& grid);

/// Buffers the blocks of one panel and writes them in runs. `first_array` is the position of the
/// group's first array in the writer's plan.
class block_rows {
  public:
    block_rows(io::array_writer& writer, std::size_t first_array);
    ~block_rows();
    void put(std::uint64_t block, const block::block_stats& stats);
    void flush();

  private:
    struct columns;
    std::unique_ptr<columns> columns_;
};

}  // namespace mx::analysis
