// SPDX-License-Identifier: Apache-2.0
#include "libmx/bench/row_source.hpp"

#include "libmx/bench/memory.hpp"

namespace mx::bench {

std::uint64_t memory_to_measure() {
    constexpr std::uint64_t least = std::uint64_t{512} << 20;
    return std::max(least, 2 * largest_cache());
}

std::uint64_t default_elements(tensor::dtype type) { return memory_to_measure() / bytes_of(type); }

}  // namespace mx::bench
