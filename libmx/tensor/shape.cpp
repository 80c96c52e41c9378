// SPDX-License-Identifier: Apache-2.0
#include "libmx/tensor/shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mx::tensor {
namespace {
constexpr std::uint64_t limit = std::uint64_t{1} << 62;
}

std::optional<std::uint64_t> element_count(const shape& s) {
    // A zero extent makes the count zero however large the others are, so look for it first.
    for (const std::uint64_t extent : s) {
        if (extent == 0) return 0;
    }
    std::uint64_t count = 1;
    for (const std::uint64_t extent : s) {
        if (count > limit / extent) return std::nullopt;
        count *= extent;
    }
    return count;
}

std::optional<std::uint64_t> byte_count(dtype type, std::uint64_t elements) {
    const auto bits = static_cast<std::uint64_t>(row_of(type).bits);
    if (elements > limit / bits) return std::nullopt;
    return elements / 8 * bits + (elements % 8 * bits + 7) / 8;
}

std::string to_string(const shape& s) {
    if (s.empty()) return "-";
    return fmt::format("{}", fmt::join(s, "x"));
}

}  // namespace mx::tensor
