// SPDX-License-Identifier: Apache-2.0
// Runs in parts: which tensors, and which pieces of large ones, each of N parts works on, and what
// the parts found, from which the run is finished as if it had been one.
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

/// More parts than that are refused.
inline constexpr std::uint64_t most_parts = 1000000;

/// "3/7". Throws base::error (usage) unless it is i/N with 1 <= i <= N <= most_parts.
part_number parse_part(std::string_view text);

/// Elements [first, end) of a tensor.
struct tensor_piece {
    std::size_t tensor = 0;  ///< its index
    std::uint64_t first = 0, end = 0;

    bool operator==(const tensor_piece&) const = default;
};

enum class cutting : std::uint8_t { allowed, none };

/// What `part` works on: neighbours in the order of the files, whose stored bytes are 1/N of all to
/// within a tenth of that. Parts begin and end between tensors where a border lies within a
/// twentieth of a part from the even division; other tensors are cut, and never with cutting::none.
/// Depends on the sizes of `tensors` and `part` alone.
std::vector<tensor_piece> deal(const std::vector<tensor_ref>& tensors, const part_number& part,
                               cutting cut = cutting::allowed);

/// What is read of a tensor.
std::uint64_t bytes_of(const io::tensor_info& info);
/// The same of a piece, rounded down.
std::uint64_t bytes_of(const io::tensor_info& info, const tensor_piece& p);

/// Elements of the panels of a tensor of which some are worked on: the same on every backend.
std::uint64_t cut_panel_target(const io::tensor_info& info);

/// What a part found of a tensor.
struct piece_sums {
    tensor_piece of;
    std::string tensor;             ///< its name
    std::uint64_t bytes = 0;        ///< stored, of the piece
    bool whole = true;              ///< the piece is all of the tensor
    std::uint64_t inexact = 0;      ///< values that widening rounded
    std::string own;                ///< what visitors said of the tensor (base::tally_text)
    std::vector<std::string> jobs;  ///< and of its jobs
};

/// A run in parts: the sums of a part that is made, or of all parts, from which a run is finished.
struct run_share {
    bool merges = false;           ///< nothing is read: `sums` are there
    part_number part;              ///< that is made
    std::vector<piece_sums> sums;  ///< by tensor, then place

    /// Brings the sums of all parts into order. Throws base::error (input) unless they make up all
    /// of `tensors`.
    void arrange(const std::vector<tensor_ref>& tensors);
    /// Which of `tensors` the part looks at: none of them where sums are merged.
    std::vector<bool> looks_at(const std::vector<tensor_ref>& tensors) const;
};

}  // namespace mx::engine
