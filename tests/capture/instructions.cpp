// SPDX-License-Identifier: Apache-2.0
#include "apps/mx_capture/instructions.hpp"

#include <set>

#include "tests/catch.hpp"
#ifdef MX_HAS_CUDA
#include "apps/mx_capture/cuda/kernels.hpp"
#include "libmx/conformance/vectors/conversions.hpp"
#endif

using namespace mx::capture;

namespace {

const instruction& named(const std::vector<instruction>& list, const std::string& name) {
    for (const instruction& i : list) {
        if (i.name == name) return i;
    }
    FAIL("no instruction " << name);
    return list.front();
}

std::vector<std::uint32_t> counting(std::size_t count, std::uint32_t mask) {
    std::vector<std::uint32_t> codes(count);
    for (std::size_t i = 0; i < count; ++i) codes[i] = static_cast<std::uint32_t>(i * 7 + 1) & mask;
    return codes;
}

}  // namespace

TEST_CASE("every chip's instructions have names of their own") {
    for (const chip& c : chips) {
        std::set<std::string> names;
        for (const instruction& i : instructions_of(c)) {
            INFO(c.name << " " << i.name);
            CHECK(names.insert(i.name).second);
            CHECK(i.what.a != nullptr);
            CHECK(i.what.b != nullptr);
        }
    }
    CHECK(instructions_of(*find_chip("sm_90a")).size() == 4 + 4 + 8 + 8);
    // Pairs of blocks: the first eight again, and f8f6f4, mxf8f6f4 of a few formats.
    CHECK(instructions_of(*find_chip("sm_100a")).size() == 4 + 4 + 8 + 25 * 3 + 4 + 8 + 1 + 7 * 2);
    CHECK(instructions_of(*find_chip("sm_120a")).size() == 4 + 8 + 25 * 3 + 3);
    CHECK(instructions_of(*find_chip("sm_121a")).size() ==
          instructions_of(*find_chip("sm_120a")).size());
    CHECK(find_chip(12, 1) != nullptr);
    CHECK(find_chip(9, 1) == nullptr);
}

// Fields as in the tables of the PTX ISA: D type from bit 4, A from 7, B from 10, N / 8 from 17, M
// / 16 from 24; with scales their type in bit 23 and no D type.
TEST_CASE("instruction descriptors") {
    const auto list = instructions_of(*find_chip("sm_100a"));
    const std::uint32_t shape = 2u << 17 | 8u << 24;
    CHECK(named(list, "tcgen05.f16.bf16.bf16.f32").descriptor ==
          (shape | 1u << 4 | 1u << 7 | 1u << 10));
    CHECK(named(list, "tcgen05.f16.f16.f16.f16").descriptor == shape);
    CHECK(named(list, "tcgen05.tf32.tf32.tf32.f32").descriptor ==
          (shape | 1u << 4 | 2u << 7 | 2u << 10));
    CHECK(named(list, "tcgen05.f8f6f4.e2m1.e3m2.f32").descriptor ==
          (shape | 1u << 4 | 5u << 7 | 4u << 10));
    CHECK(named(list, "tcgen05.mxf8f6f4.e5m2.e2m3.e8m0x32").descriptor ==
          (shape | 1u << 7 | 3u << 10 | 1u << 23));
    CHECK(named(list, "tcgen05.mxf4nvf4.e2m1.e2m1.ue4m3x16").descriptor ==
          (shape | 1u << 7 | 1u << 10));
    const std::uint32_t pair = 4u << 17 | 16u << 24;
    CHECK(named(list, "tcgen05_pair.f8f6f4.e4m3.e2m1.f32").descriptor ==
          (pair | 1u << 4 | 5u << 10));
    CHECK(named(list, "tcgen05_pair.mxf4.e2m1.e2m1.e8m0x32").descriptor ==
          (pair | 1u << 7 | 1u << 10 | 1u << 23));
}

TEST_CASE("slices of K hold the codes where the unit reads them") {
    const auto b200 = instructions_of(*find_chip("sm_100a"));
    const auto rtx = instructions_of(*find_chip("sm_120a"));
    SECTION("16 bits in order") {
        const instruction& i = named(b200, "tcgen05.f16.bf16.bf16.f32");
        const auto bytes = packed_slices(i, *i.what.a, counting(32, 0xffff), 1, 2);
        CHECK(bytes.size() == 64);
        CHECK(bytes[0] == 1);
        CHECK(bytes[2] == 8);
        CHECK(bytes[32] == (16 * 7 + 1));  // the second step
    }
    SECTION("fp6 in shared memory: 16 codes in 12 of 16 bytes") {
        const instruction& i = named(b200, "tcgen05.mxf8f6f4.e3m2.e3m2.e8m0x32");
        const auto bytes = packed_slices(i, *i.what.a, std::vector<std::uint32_t>(32, 0x3f), 1, 1);
        for (std::size_t at = 0; at < 32; ++at) CHECK(bytes[at] == (at % 16 < 12 ? 0xff : 0));
    }
    SECTION("fp4 in shared memory: 16 codes in 8 of 16 bytes, the first in the low half") {
        const instruction& i = named(b200, "tcgen05.f8f6f4.e2m1.e2m1.f32");
        const auto bytes = packed_slices(i, *i.what.a, counting(32, 0xf), 1, 1);
        CHECK(bytes[0] == 0x81);
        for (std::size_t at = 8; at < 16; ++at) CHECK(bytes[at] == 0);
        CHECK((bytes[16] & 0xf) == ((16 * 7 + 1) & 0xf));
    }
    SECTION("fp4 in registers: the middle of a byte") {
        const instruction& i = named(rtx, "mma_sync.mxf8f6f4.e2m1.e2m1.e8m0x32");
        const auto bytes = packed_slices(i, *i.what.a, counting(32, 0xf), 1, 1);
        CHECK(bytes[0] == 1 << 2);
        CHECK(bytes[1] == 8 << 2);
    }
    SECTION("the 4-bit kinds: two codes in a byte") {
        const instruction& i = named(rtx, "mma_sync.mxf4.e2m1.e2m1.e8m0x32");
        const auto bytes = packed_slices(i, *i.what.a, counting(64, 0xf), 1, 1);
        CHECK(bytes[0] == 0x81);
        CHECK(bytes[31] == ((62 * 7 + 1) & 0xf) + (((63 * 7 + 1) & 0xf) << 4));
    }
    SECTION("scales of a step in one word") {
        const instruction& i = named(b200, "tcgen05.mxf4nvf4.e2m1.e2m1.ue4m3x16");
        const std::vector<std::uint8_t> scales{1, 2, 3, 4, 5, 6, 7, 8};  // a row, two steps
        CHECK(packed_scales(i.what, scales, 1, 2) ==
              std::vector<std::uint32_t>{0x04030201u, 0x08070605u});
        // Fewer than four repeat.
        const instruction& two = named(b200, "tcgen05.mxf4.e2m1.e2m1.e8m0x32");
        CHECK(packed_scales(two.what, scales, 2, 2) ==
              std::vector<std::uint32_t>{0x02010201u, 0x06050605u, 0x04030403u, 0x08070807u});
        const instruction& one = named(b200, "tcgen05.mxf8f6f4.e4m3.e4m3.e8m0x32");
        CHECK(packed_scales(one.what, scales, 1, 1) == std::vector<std::uint32_t>{0x01010101u});
    }
}

#ifdef MX_HAS_CUDA
namespace {

template <typename Row>
bool has(std::string_view ptx, std::initializer_list<std::span<const Row>> lists) {
    for (const std::span<const Row> rows : lists) {
        for (const Row& row : rows) {
            if (row.ptx == ptx) return true;
        }
    }
    return false;
}

}  // namespace

TEST_CASE("a kernel issues every instruction and every conversion") {
    for (const chip& c : chips) {
        for (const instruction& i : instructions_of(c)) {
            INFO(i.ptx);
            CHECK(has<mma_kernel>(
                i.ptx, {mma_sync_kernels(), mma_sync_fp8_kernels(), mma_sync_scaled_kernels(),
                        wgmma_kernels(), tcgen05_kernels()}));
        }
    }
    for (const auto& row : mx::conformance::vectors::narrowings()) {
        INFO(row.instruction);
        CHECK(has<narrow_kernel>(row.instruction, {fp8_narrow_kernels(), narrow_kernels()}));
    }
    for (const auto& row : mx::conformance::vectors::widenings) {
        INFO(row.instruction);
        CHECK(has<widen_kernel>(row.instruction, {fp8_widen_kernels(), widen_kernels()}));
    }
    for (const auto& row : mx::conformance::vectors::stochastic_narrowings) {
        INFO(row.instruction);
        CHECK(has<stochastic_kernel>(row.instruction, {stochastic_kernels()}));
    }
}
#endif
