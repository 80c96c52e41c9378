// SPDX-License-Identifier: Apache-2.0
// Runs in N parts: the tensors, and ranges of large tensors, of each part, and the results of the
// parts, from which the run is completed as if it had been one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/engine/model.hpp"

namespace mx::engine {

/// Part `index` (from 1) of `count`.
struct part_number {
    std::uint64_t index = 1, count = 1;

    bool operator==(const part_number&) const = default;
};

/// The largest number of parts.
inline constexpr std::uint64_t most_parts = 1000000;

/// "3/7". Throws base::error (usage) unless it is i/N with 1 <= i <= N <= most_parts.
part_number parse_part(std::string_view text);

/// Elements [first, end) of a tensor.
struct tensor_range {
    std::size_t tensor = 0;  ///< its index
    std::uint64_t first = 0, end = 0;

    bool operator==(const tensor_range&) const = default;
};

enum class splitting : std::uint8_t { allowed, none };

/// The work of `part`: consecutive tensors in file order whose stored bytes are 1/N of the total to
/// within a tenth of that. A boundary is placed between tensors if one is within a twentieth of a
/// part from the even division; otherwise a tensor is split, except with splitting::none. Depends
/// only on the sizes of `tensors` and on `part`.
std::vector<tensor_range> ranges_of(const std::vector<tensor_ref>& tensors, const part_number& part,
                                    splitting split = splitting::allowed);

/// The bytes read of a tensor.
std::uint64_t bytes_of(const io::tensor_info& info);
/// The bytes of a range, rounded down.
std::uint64_t bytes_of(const io::tensor_info& info, const tensor_range& p);

/// The panel size, in elements, of a split tensor: the same on every backend.
std::uint64_t split_panel_target(const io::tensor_info& info);

/// The results of a part for a tensor.
struct range_sums {
    tensor_range of;
    std::string tensor;             ///< its name
    std::uint64_t bytes = 0;        ///< stored, of the range
    bool whole = true;              ///< the range is all of the tensor
    std::uint64_t inexact = 0;      ///< values that widening rounded
    std::string own;                ///< what visitors said of the tensor (base::archive)
    std::vector<std::string> jobs;  ///< and of its jobs
};

/// A run in parts: the sums of a part that is being computed, or of all parts, from which a run is
/// completed.
struct partial_run {
    bool merges = false;           ///< nothing is read: `sums` are there
    part_number part;              ///< that is made
    std::vector<range_sums> sums;  ///< by tensor, then place

    /// Sorts the sums of all parts. Throws base::error (input) unless they cover all of `tensors`.
    void arrange(const std::vector<tensor_ref>& tensors);
    /// Which of `tensors` the part reads: none if sums are merged.
    std::vector<bool> looks_at(const std::vector<tensor_ref>& tensors) const;
};

}  // namespace mx::engine
