// SPDX-License-Identifier: Apache-2.0
// The tensors of a model as its user sees them: quantized ones decoded, fused ones split, axes
// swapped, what is no weight noted as such. Everything behind works on a reader and does not know
// the difference.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libmx/io/reader.hpp"

namespace mx::engine {

struct view_request {
    bool raw = false;       ///< arrays as they are stored, nothing decoded
    bool swizzled = false;  ///< block scales are in the 128x4 order (block/scale_swizzle.hpp)
    bool integers = false;  ///< those of 32 and 64 bits are weights too
    /// "NAME=PART:EXTENT,PART:EXTENT,..." or "NAME@AXIS=...": NAME (a glob) becomes NAME.PART, ...
    /// along axis 0 or AXIS (negative counts from the end).
    std::vector<std::string> splits;
    std::vector<std::string> transposed;  ///< globs: the last two axes change places
    std::vector<std::string> experts;     ///< globs: axis 0 is a stack, NAME becomes NAME.0, ...
    /// "NAME=COUNT": the last axis is that many heads side by side, and becomes two: heads, and the
    /// columns of one.
    std::vector<std::string> heads;
    /// Tensors with one axis longer than 1 that is not the last, as 512x1, become 1-D: blocks then
    /// run along that axis.
    bool vectors = false;
};

/// Integers of 32 bits and more: indices and counts.
bool is_wide_integer(tensor::dtype type);

/// The tensors of `files` under `request`, in the order of the files; nullptr when they are just
/// those of the only file. Decoding comes first, then splits in their order, then transposition,
/// stacks and heads. A tensor that can be read but is no weight gets a note: codes and scales that
/// look like one tensor and are not decoded, and integers of 32 and 64 bits. `files` outlive the
/// reader. Throws base::error (usage) for a split or a glob that fits no tensor, and for extents
/// that do not add up.
std::unique_ptr<io::reader> make_view(const std::vector<std::unique_ptr<io::reader>>& files,
                                      const view_request& request);

}  // namespace mx::engine
