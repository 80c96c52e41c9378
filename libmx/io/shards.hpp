// SPDX-License-Identifier: Apache-2.0
// One tensor assembled from boxes of it that are stored separately.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "libmx/io/sources.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::io {

/// The position of a box in the tensor.
struct shard_box {
    tensor::shape origin;
    tensor::shape extents;
};

/// Compares boxes with the `shape` they should make up, whose element count is known to fit.
/// Returns what is wrong, empty if every element is in exactly one box. `budget` decreases with the
/// comparisons made; exceeding it is an error, too.
std::string check_shards(const tensor::shape& shape, const std::vector<shard_box>& boxes,
                         std::uint64_t& budget);

/// The tensor of `shape` with elements of `width` bytes, whose `boxes` cover it exactly. `open`
/// returns the elements of a box in C order; it is called when a box is first needed, from one
/// thread at a time, and again if the box was not used for long.
std::unique_ptr<byte_source> from_shards(tensor::shape shape, std::vector<shard_box> boxes,
                                         std::size_t width,
                                         std::function<shared_source(std::uint64_t)> open);

}  // namespace mx::io
