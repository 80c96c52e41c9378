// SPDX-License-Identifier: Apache-2.0
// An array of the caller as a file with one tensor, so that all code that reads files accepts it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libmx/io/reader.hpp"

namespace mx::io {

/// `data` must outlive the reader and what it opens. `strides` are in elements; empty: C order.
/// Throws base::error (usage) if numbers of axes differ, extents overflow, or types of less than a
/// byte have strides.
std::shared_ptr<const reader> memory_tensor(const void* data, tensor::dtype type,
                                            tensor::shape extents,
                                            std::vector<std::int64_t> strides,
                                            std::string name = {});

/// Tensor `index` of a reader under another name, as the only tensor.
std::shared_ptr<const reader> renamed(std::shared_ptr<const reader> of, std::size_t index,
                                      std::string name);

/// What products with an array sum over: its last axis, along which its blocks run. Unknown for a
/// scalar.
contraction last_axis_of(const tensor::shape& extents);

/// Tensor `index` of a reader as an array: its blocks run along its last axis, whatever its file
/// says. The reader must outlive it.
std::shared_ptr<const reader> as_array(const reader& of, std::size_t index);

/// Tensors of several readers as those of one, which owns the readers.
std::unique_ptr<reader> together(
    std::vector<std::pair<std::shared_ptr<const reader>, std::size_t>> tensors);

/// The same as if a file in `folder` held them: nothing is known of what products sum over.
std::unique_ptr<reader> as_file_in(
    const std::string& folder,
    std::vector<std::pair<std::shared_ptr<const reader>, std::size_t>> tensors);

}  // namespace mx::io
