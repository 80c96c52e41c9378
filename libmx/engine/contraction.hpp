// SPDX-License-Identifier: Apache-2.0
// The axes of a tensor that a matrix product sums over (K): as the file states them, by the names
// and the configuration of known models, or assumed from the shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/engine/geometry.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/report/record.hpp"

namespace mx::engine {

/// The axes [first, last) that a product sums over; none for tensors that are not operands.
struct summed_axes {
    int first = 0, last = 0;
    std::uint64_t extent = 0;  ///< K: the product of their extents
    bool assumed = false;      ///< from the shape alone
    std::string why;

    bool any() const { return first < last; }
    friend bool operator==(const summed_axes&, const summed_axes&) = default;
};

/// The object `contraction` of JSON; null if there are none.
report::value to_value(const summed_axes& k);
/// Reads one; other values are none. Sets no extent.
summed_axes summed_axes_in(const report::value& v);
/// Sets the extent by `shape`; false if it lacks the axes.
bool set_extent(summed_axes& k, const tensor::shape& shape);

/// "axis 0", "axes 1-3".
std::string axes_text(const summed_axes& k);

/// The axes that a product with a tensor of this shape sums over if nothing states them: the last
/// of [out, in]; of three axes or more whose last is shorter than a usual block, a window, all
/// after the first: [out, in, ...].
axis_range assumed_axes(const tensor::shape& shape);

/// The axes that default blocks of the tensor run along: as stated (io::tensor_info::sums_over), or
/// assumed.
axis_range axes_along_sums(const io::tensor_info& info);

/// The axes and why. None for tensors that are in no product: those of which the file says so, and,
/// if it says nothing, vectors, norms, biases, embeddings and tensors without a role.
summed_axes summed_axes_of(const io::tensor_info& info, std::string_view role);

/// States the axes of tensors by their names and the `model_type` of config.json beside their file,
/// unless a reader did. Returns whether any was stated.
bool state_axes_by_names(const std::vector<io::tensor_info*>& tensors);

/// The metadata of a file with values that mx wrote, if a tensor's axes are stated and not the last
/// one: name after a fixed prefix, first and last axis as "0-1".
void put_axes(io::metadata_map& to, const io::tensor_info& info);
/// States the axes that put_axes wrote, unless a reader did. Returns whether any was stated.
bool state_axes_by_metadata(const io::metadata_map& metadata,
                            const std::vector<io::tensor_info*>& tensors);
/// "FIRST-LAST", two axes of `rank`.
std::optional<axis_range> parse_axes(std::string_view text, std::size_t rank);

/// `stated` after the last two of `axes` axes change places.
void transpose_axes(io::contraction& stated, int axes);
/// After axis 0 is taken away.
void drop_first_axis(io::contraction& stated);
/// After the last of `axes` axes became two.
void split_last_axis(io::contraction& stated, int axes);

}  // namespace mx::engine
