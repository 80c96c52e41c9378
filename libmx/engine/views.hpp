// SPDX-License-Identifier: Apache-2.0
// Views of a model's tensors: quantized ones decoded, fused ones split, axes swapped, tensors that
// are not weights marked. Later stages use a reader that hides the difference.
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
    /// "NAME=COUNT": the last axis consists of that many heads, and is split into two axes: heads,
    /// and the columns of a head.
    std::vector<std::string> heads;
    /// Tensors with one axis longer than 1 that is not the last, such as 512x1, become 1-D: blocks
    /// then run along that axis.
    bool vectors = false;
};

/// Integers of 32 bits and more: indices and counts.
bool is_wide_integer(tensor::dtype type);

/// The tensors of `files` under `request`, in file order; nullptr if these are the tensors of a
/// single file without changes. Decodes first, then applies splits in order, then transposition,
/// stacks and heads. Readable tensors that are not weights get a note: codes and scales that look
/// like one tensor but are not decoded, and integers of 32 and 64 bits. `files` must outlive the
/// reader. Throws base::error (usage) for a split or a glob that matches no tensor, and for extents
/// that do not add up.
std::unique_ptr<io::reader> make_view(const std::vector<std::unique_ptr<io::reader>>& files,
                                      const view_request& request);

}  // namespace mx::engine
