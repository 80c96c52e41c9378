// SPDX-License-Identifier: Apache-2.0
// One tensor put together from boxes of it that are stored apart.
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

/// Where a box lies in the tensor.
struct shard_box {
    tensor::shape origin;
    tensor::shape extents;
};

/// Compares boxes with the `shape` they should make up, whose element count is known to fit.
/// Returns what is wrong, empty when every element is in exactly one box. `budget` is lowered by
/// the comparisons made; running out of it is wrong, too.
std::string check_shards(const tensor::shape& shape, const std::vector<shard_box>& boxes,
                         std::uint64_t& budget);

/// The tensor of `shape` with elements of `width` bytes, whose `boxes` cover it exactly. `open`
/// gives the elements of a box in C order; it is called when a box is first wanted, from one thread
/// at a time, and again when the box was not wanted for long.
std::unique_ptr<byte_source> from_shards(tensor::shape shape, std::vector<shard_box> boxes,
                                         std::size_t width,
                                         std::function<shared_source(std::uint64_t)> open);

}  // namespace mx::io
