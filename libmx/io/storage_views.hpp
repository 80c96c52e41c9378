// SPDX-License-Identifier: Apache-2.0
// Tensors of one file that have bytes in common: each byte is counted for one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "libmx/io/read_budget.hpp"
#include "libmx/io/reader.hpp"

namespace mx::io {

/// Where a tensor lies: bytes [begin, end) of a storage.
struct storage_view {
    std::string_view storage;
    std::uint64_t begin = 0, end = 0;
    std::size_t tensor = 0;  ///< its index
    std::uint64_t storage_bytes = 0;
    std::uint64_t occupied = 0;        ///< bytes of the storage in the file, if compressed fewer
    std::vector<std::uint64_t> steps;  ///< shape and strides of a view with gaps; else empty
};

/// Sets tensor_info::tied_to and stored_bytes of tensors so that no storage is counted twice: a
/// view that lies in another is tied to it, and one that overlaps others counts the rest. Returns
/// the tensors that overlap another, each with one of those that it overlaps. `budget` pays for the
/// names.
std::vector<std::pair<std::size_t, std::size_t>> count_storage_once(
    std::vector<storage_view> views, std::vector<tensor_info>& tensors, read_budget& budget);

}  // namespace mx::io
