// SPDX-License-Identifier: Apache-2.0
#include "libmx/block/scale_swizzle.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "tests/catch.hpp"

namespace block = mx::block;

TEST_CASE("places in the 128x4 order") {
    // Examples worked out from the layout's description: 32 rows of 16 bytes, each holding four
    // groups of four columns for rows r, r + 32, r + 64 and r + 96.
    CHECK(block::swizzled_index(0, 0, 4) == 0);
    CHECK(block::swizzled_index(0, 3, 4) == 3);
    CHECK(block::swizzled_index(1, 0, 4) == 16);
    CHECK(block::swizzled_index(31, 0, 4) == 496);
    CHECK(block::swizzled_index(32, 0, 4) == 4);
    CHECK(block::swizzled_index(127, 3, 4) == 511);
    CHECK(block::swizzled_index(0, 4, 5) == 512);
    CHECK(block::swizzled_index(128, 0, 5) == 1024);
    CHECK(block::swizzled_index(129, 4, 5) == 3 * 512 + 16);
    CHECK(block::swizzled_bytes(130, 5) == 4 * 512);
    CHECK(block::swizzled_bytes(128, 4) == 512);
    CHECK(block::swizzled_bytes(0, 4) == 0);
}

TEST_CASE("every scale has a place of its own, and comes back from it") {
    for (const auto& [rows, cols] :
         {std::pair<std::uint64_t, std::uint64_t>{130, 5}, {1, 1}, {128, 4}, {33, 9}, {300, 2}}) {
        std::set<std::uint64_t> places;
        for (std::uint64_t r = 0; r < rows; ++r) {
            for (std::uint64_t c = 0; c < cols; ++c) {
                places.insert(block::swizzled_index(r, c, cols));
            }
        }
        CHECK(places.size() == rows * cols);
        const std::uint64_t size = block::swizzled_bytes(rows, cols);
        CHECK(*places.rbegin() < size);

        std::vector<std::byte> scales(static_cast<std::size_t>(rows * cols));
        for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = std::byte(i % 250 + 1);
        std::vector<std::byte> swizzled(static_cast<std::size_t>(size), std::byte{0xff});
        block::swizzle(scales, rows, cols, swizzled);
        CHECK(static_cast<std::uint64_t>(std::count(swizzled.begin(), swizzled.end(),
                                                    std::byte{0})) == size - scales.size());
        std::vector<std::byte> back(scales.size());
        block::unswizzle(swizzled, rows, cols, back);
        CHECK(back == scales);
    }
}
