// SPDX-License-Identifier: Apache-2.0
// The layouts of operands and results against the formulas of the documents, element by element.
#include "apps/mx_capture/cuda/layouts.hpp"

#include <cstdint>
#include <functional>
#include <set>
#include <utility>

#include "tests/catch.hpp"

using namespace mx::capture;

namespace {

// PTX ISA, "Matrix Fragments for mma.m16n8k8" (tf32), "mma.m16n8k16" (f16 and bf16), "mma.m16n8k32"
// (8 bits) and "mma.m16n8k64" (4 bits): row and column of element `i` of a lane's fragment of A,
// row of B (its column is groupID). g: groupID, t: threadID_in_group.
struct fragment_rule {
    int bits;
    int k;
    std::function<std::pair<int, int>(int g, int t, int i)> a;
    std::function<int(int t, int i)> b_row;
};
const fragment_rule rules[] = {
    {32, 8,
     [](int g, int t, int i) {
         return std::pair(i == 0 || i == 2 ? g : g + 8, i == 0 || i == 1 ? t : t + 4);
     },
     [](int t, int i) { return i == 0 ? t : t + 4; }},
    {16, 16,
     [](int g, int t, int i) {
         const bool upper = (0 <= i && i < 2) || (4 <= i && i < 6);
         return std::pair(upper ? g : g + 8, i < 4 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8);
     },
     [](int t, int i) { return i < 2 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8; }},
    {8, 32,
     [](int g, int t, int i) {
         const bool upper = (0 <= i && i < 4) || (8 <= i && i < 12);
         return std::pair(upper ? g : g + 8, i < 8 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16);
     },
     [](int t, int i) { return i < 4 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16; }},
    {4, 64,
     [](int g, int t, int i) {
         const bool upper = (0 <= i && i < 8) || (16 <= i && i < 24);
         return std::pair(upper ? g : g + 8, i < 16 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32);
     },
     [](int t, int i) { return i < 8 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32; }},
};

}  // namespace

TEST_CASE("registers of mma.sync hold the elements that the documents put there") {
    for (const fragment_rule& rule : rules) {
        CAPTURE(rule.bits);
        const int each = 32 / rule.bits;  // elements of a register
        std::set<std::pair<int, int>> of_a, of_b;
        for (int lane = 0; lane < 32; ++lane) {
            const int g = lane >> 2;
            const int t = lane % 4;
            for (int i = 0; i < 4 * each; ++i) {
                const auto [row, k] = rule.a(g, t, i);
                // Element k of a row is in word k / each of it, at position k % each.
                CHECK(a_word(lane, i / each) == row * 8 + k / each);
                CHECK(i % each == k % each);
                of_a.insert({row, k});
            }
            for (int i = 0; i < 2 * each; ++i) {
                const int k = rule.b_row(t, i);
                CHECK(b_word(lane, i / each) == g * 8 + k / each);
                CHECK(i % each == k % each);
                of_b.insert({g, k});
            }
        }
        CHECK(of_a.size() == static_cast<std::size_t>(16 * rule.k));
        CHECK(of_b.size() == static_cast<std::size_t>(8 * rule.k));
    }
}

// PTX ISA, the same sections: row = groupID for c0 and c1, groupID + 8 for c2 and c3; col =
// threadID_in_group * 2 + (i & 1). wgmma m64n8: row = (warp) * 16 + the same.
TEST_CASE("outputs lie where the documents put them") {
    std::set<int> places;
    for (int lane = 0; lane < 32; ++lane) {
        for (int i = 0; i < 4; ++i) {
            const int row = i < 2 ? lane >> 2 : (lane >> 2) + 8;
            const int col = lane % 4 * 2 + (i & 1);
            CHECK(d_place(lane, i) == row * 8 + col);
            places.insert(d_place(lane, i));
        }
    }
    CHECK(places.size() == 128);
}

namespace {

// Where a descriptor says that byte `at` of a row lies, from the operand's first byte on.
// NVIDIA/cutlass, include/cute/atom/mma_traits_sm90_gmma.hpp: K-major INTERLEAVE is ((8,m),(T,2)) :
// ((1T,SBO),(1,LBO)), T elements of 16 bytes; SW32 is Swizzle<1,4,3> over ((8,m),(T,2)) :
// ((2T,SBO),(1,T)). include/cute/arch/mma_sm90_desc.hpp: address in bits 0 to 13, LBO in 16 to 29,
// SBO in 32 to 45, all without their 4 lowest bits, layout in 62 and 63: 0 INTERLEAVE, 3 B32.
std::uint64_t stated(std::uint64_t descriptor, std::uint32_t row, std::uint32_t at) {
    const std::uint64_t lbo = (descriptor >> 16 & 0x3fffu) << 4;
    const std::uint64_t sbo = (descriptor >> 32 & 0x3fffu) << 4;
    if (descriptor >> 62 == 0) return row % 8 * 16 + row / 8 * sbo + at % 16 + at / 16 * lbo;
    REQUIRE(descriptor >> 62 == 3);
    const std::uint64_t plain = row % 8 * 32 + row / 8 * sbo + at;
    return plain ^ (plain >> 3 & 0x10u);
}

}  // namespace

TEST_CASE("operands in shared memory lie where their descriptor says") {
    const std::uint32_t address = 0x2c400u;
    for (const matrix_layout layout : {matrix_layout::documented, matrix_layout::swizzled}) {
        const std::uint64_t descriptor = matrix_descriptor(layout, address);
        CHECK((descriptor & 0x3fffu) << 4 == address);
        CHECK((descriptor & 0x3fffc000c000c000u) == 0);  // no base offset
        std::set<std::uint64_t> offsets;
        for (std::uint32_t row = 0; row < 64; ++row) {
            for (std::uint32_t at = 0; at < 32; ++at) {
                CHECK(operand_offset(layout, row, at / 4) + at % 4 == stated(descriptor, row, at));
                offsets.insert(stated(descriptor, row, at));
            }
        }
        CHECK(offsets.size() == 64 * 32);
        CHECK(*offsets.rbegin() == 64 * 32 - 1);
    }
    // The bytes are those of the documented layout, and the offsets change places.
    const std::uint64_t documented = matrix_descriptor(matrix_layout::documented, address);
    const std::uint64_t swapped = matrix_descriptor(matrix_layout::offsets_swapped, address);
    CHECK((swapped >> 16 & 0x3fffu) == (documented >> 32 & 0x3fffu));
    CHECK((swapped >> 32 & 0x3fffu) == (documented >> 16 & 0x3fffu));
    CHECK(operand_offset(matrix_layout::offsets_swapped, 9, 5) ==
          operand_offset(matrix_layout::documented, 9, 5));
}
