// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/text_tables.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>

namespace mx::base {
namespace {

__extension__ using wide = unsigned __int128;
constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1;
constexpr std::size_t piece_bytes = 7;  // a coefficient below the prime

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    const wide product = wide{a} * b;
    const std::uint64_t sum =
        static_cast<std::uint64_t>(product & prime) + static_cast<std::uint64_t>(product >> 61);
    return sum >= prime ? sum - prime : sum;
}

std::uint64_t random_point() {
    std::random_device source;
    return (std::uint64_t{source()} << 32 | source()) % (prime - 2) + 2;
}

}  // namespace

// The polynomial whose coefficients are the pieces of the text, at a random point. Two texts of n
// pieces have one value at no more than n + 1 of the 2^61 points, whoever chose them.
std::size_t seeded_hash::operator()(std::string_view text) const {
    static const std::uint64_t point = random_point();
    std::uint64_t value = times(text.size() % prime, point);
    while (!text.empty()) {
        const std::size_t count = std::min(text.size(), piece_bytes);
        std::uint64_t piece = 0;
        std::memcpy(&piece, text.data(), count);
        text.remove_prefix(count);
        value = times((value + piece) % prime, point);
    }
    return static_cast<std::size_t>(value);
}

}  // namespace mx::base
