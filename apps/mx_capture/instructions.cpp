// SPDX-License-Identifier: Apache-2.0
// Encodings of the instruction descriptor: PTX ISA, tcgen05 instruction descriptor (the same in
// NVIDIA/cutlass, include/cute/arch/mma_sm100_desc.hpp).
#include "apps/mx_capture/instructions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace mx::capture {
namespace {

constexpr std::array<std::string_view, 5> small_formats{"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"};
constexpr std::array<std::string_view, 2> fp8_formats{"e4m3", "e5m2"};

// Matrix formats of the instruction descriptor; numbers mean other formats in other kinds.
struct descriptor_format {
    std::string_view name;
    std::uint32_t code;
};
constexpr std::array descriptor_formats{
    descriptor_format{"f16", 0},  descriptor_format{"bf16", 1}, descriptor_format{"tf32", 2},
    descriptor_format{"e4m3", 0}, descriptor_format{"e5m2", 1}, descriptor_format{"e2m3", 3},
    descriptor_format{"e3m2", 4}, descriptor_format{"e2m1", 5},
};

std::uint32_t descriptor_code(const vectors::mma_case& what, const gemm::operand_format& f) {
    if (what.instruction_k == 64) return 1;  // e2m1 of the 4-bit kinds
    const auto row = std::ranges::find(descriptor_formats, f.name, &descriptor_format::name);
    return row->code;
}

// K-major operands, nothing negated, dense, scales from byte 0 of their words. `group`: blocks.
std::uint32_t descriptor_of(const vectors::mma_case& what, std::size_t group) {
    const std::uint32_t formats =
        descriptor_code(what, *what.a) << 7 | descriptor_code(what, *what.b) << 10;
    const std::uint32_t shape = static_cast<std::uint32_t>(group * tcgen05_columns / 8) << 17 |
                                static_cast<std::uint32_t>(group * tcgen05_rows / 16) << 24;
    if (what.scale == nullptr) return formats | shape | (what.f16 ? 0u : 1u) << 4;
    return formats | shape | (what.scale->format == "e8m0" ? 1u : 0u) << 23;
}

vectors::mma_case case_of(std::string_view a, std::string_view b, bool f16, std::size_t k,
                          const gemm::operand_scale* scale = nullptr) {
    return {gemm::find_operand_format(a), gemm::find_operand_format(b), scale, f16, k, 1};
}

std::string_view accumulator_name(bool f16) { return f16 ? "f16" : "f32"; }
std::string_view group_name(std::size_t group) { return group == 1 ? "" : "_pair"; }

struct lister {
    std::vector<instruction> list;

    // `kind`: of those that mix widths, in name and PTX; "" for the others.
    void mma_sync(std::string_view a, std::string_view b, bool f16, std::size_t k,
                  std::string_view kind = "") {
        const std::string_view d = accumulator_name(f16);
        const bool mixed = !kind.empty();
        list.push_back({fmt::format("mma_sync.{}{}{}.{}.{}", kind, mixed ? "." : "", a, b, d),
                        fmt::format("mma.sync.aligned.{}m16n8k{}.row.col.{}.{}.{}.{}",
                                    mixed ? fmt::format("kind::{}.", kind) : "", k, d, a, b, d),
                        unit::mma_sync, case_of(a, b, f16, k)});
    }
    void mma_sync_scaled(std::string_view kind, std::string_view vector, std::string_view a,
                         std::string_view b, std::size_t k, const gemm::operand_scale* scale) {
        const std::string_view stype = scale->format == "e8m0" ? "ue8m0" : scale->format;
        list.push_back(
            {fmt::format("mma_sync.{}.{}.{}.{}x{}", kind, a, b, scale->format, scale->block),
             fmt::format("mma.sync.aligned.kind::{}.block_scale.scale_vec::{}.m16n8k{}.row.col.f32."
                         "{}.{}.f32.{}",
                         kind, vector, k, a, b, stype),
             unit::mma_sync, case_of(a, b, false, k, scale)});
    }
    void wgmma(std::string_view a, std::string_view b, bool f16, std::size_t k) {
        const std::string_view d = accumulator_name(f16);
        list.push_back({fmt::format("wgmma.{}.{}.{}", a, b, d),
                        fmt::format("wgmma.mma_async.sync.aligned.m64n8k{}.{}.{}.{}", k, d, a, b),
                        unit::wgmma, case_of(a, b, f16, k)});
    }
    // The blocks that multiply together are in the name where there are two. `size`: of the blocks
    // of `scale`, where the PTX states it.
    void tcgen05(std::string_view kind, std::string_view a, std::string_view b, bool f16,
                 std::size_t k, std::size_t group = 1, const gemm::operand_scale* scale = nullptr,
                 std::string_view size = "") {
        const vectors::mma_case what = case_of(a, b, f16, k, scale);
        const std::string last = scale == nullptr
                                     ? std::string(accumulator_name(f16))
                                     : fmt::format("{}x{}", scale->format, scale->block);
        list.push_back({fmt::format("tcgen05{}.{}.{}.{}.{}", group_name(group), kind, a, b, last),
                        fmt::format("tcgen05.mma.cta_group::{}.kind::{}{}{}", group, kind,
                                    scale == nullptr ? "" : ".block_scale", size),
                        unit::tcgen05, what, descriptor_of(what, group)});
    }
};

void put_bits(std::span<std::uint8_t> bytes, std::size_t first, int count, std::uint32_t code) {
    for (int i = 0; i < count; ++i) {
        const std::size_t bit = first + static_cast<std::size_t>(i);
        bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] | (code >> i & 1u) << bit % 8);
    }
}

// The first bit of element `k` of a slice. In shared memory, 16 fp6 or fp4 codes of the mixed-width
// kinds are packed into the beginning of 16 bytes (PTX ISA, packing formats of tcgen05; the result
// of TMA's 16U6_ALIGN16B and 16U4_ALIGN16B). In registers each has a byte, fp4 in its middle bits
// (NVIDIA/cutlass, include/cute/atom/mma_traits_sm120.hpp: fp4_shift_A).
std::size_t first_bit(const instruction& i, const gemm::operand_format& f, std::size_t k) {
    const auto bits = static_cast<std::size_t>(f.code_bits());
    if (bits >= 8 || i.what.instruction_k == 64) return k * bits;
    code_layout where = i.where.codes;
    if (where == code_layout::documented) {
        where = bits == 4 ? code_layout::middle_bits : code_layout::low_bits;
        if (i.by == unit::tcgen05) where = code_layout::packed;
    }
    if (where == code_layout::packed) return k / 16 * 128 + k % 16 * bits;
    if (where == code_layout::middle_bits) return k * 8 + 2;
    return k * 8 + (where == code_layout::high_bits ? 8 - bits : 0);
}

// Pairs of blocks are documented to multiply like one block; a few pairs of formats are recorded to
// confirm that.
struct format_pair {
    std::string_view a, b;
};
constexpr std::array small_pairs{
    format_pair{"e4m3", "e4m3"}, format_pair{"e5m2", "e5m2"}, format_pair{"e3m2", "e3m2"},
    format_pair{"e2m3", "e2m3"}, format_pair{"e2m1", "e2m1"}, format_pair{"e4m3", "e5m2"},
    format_pair{"e4m3", "e2m1"},
};

}  // namespace

std::vector<instruction> instructions_of(const chip& c) {
    const gemm::operand_scale* e8m0_32 = gemm::find_operand_scale("e8m0", 32);
    const gemm::operand_scale* e8m0_16 = gemm::find_operand_scale("e8m0", 16);
    const gemm::operand_scale* ue4m3_16 = gemm::find_operand_scale("ue4m3", 16);
    lister l;
    l.mma_sync("bf16", "bf16", false, 16);
    l.mma_sync("f16", "f16", false, 16);
    l.mma_sync("f16", "f16", true, 16);
    l.mma_sync("tf32", "tf32", false, 8);
    if (c.wgmma) {
        l.wgmma("bf16", "bf16", false, 16);
        l.wgmma("f16", "f16", false, 16);
        l.wgmma("f16", "f16", true, 16);
        l.wgmma("tf32", "tf32", false, 8);
    }
    if (c.tcgen05) {
        for (const std::size_t group : {std::size_t{1}, std::size_t{2}}) {
            l.tcgen05("f16", "bf16", "bf16", false, 16, group);
            l.tcgen05("f16", "f16", "f16", false, 16, group);
            l.tcgen05("f16", "f16", "f16", true, 16, group);
            l.tcgen05("tf32", "tf32", "tf32", false, 8, group);
        }
    }
    for (const bool f16 : {false, true}) {
        for (const std::string_view a : fp8_formats) {
            for (const std::string_view b : fp8_formats) {
                if (c.fp8) l.mma_sync(a, b, f16, 32);
                if (c.wgmma) l.wgmma(a, b, f16, 32);
            }
        }
    }
    for (const std::string_view a : small_formats) {
        for (const std::string_view b : small_formats) {
            if (c.tcgen05) {
                l.tcgen05("f8f6f4", a, b, false, 32);
                l.tcgen05("f8f6f4", a, b, true, 32);
                l.tcgen05("mxf8f6f4", a, b, false, 32, 1, e8m0_32);
            }
            if (c.scaled_mma) {
                l.mma_sync(a, b, false, 32, "f8f6f4");
                l.mma_sync(a, b, true, 32, "f8f6f4");
                l.mma_sync_scaled("mxf8f6f4", "1X", a, b, 32, e8m0_32);
            }
        }
    }
    if (c.tcgen05) {
        for (const std::size_t group : {std::size_t{1}, std::size_t{2}}) {
            const auto e2m1 = [&](std::string_view kind, const gemm::operand_scale* scale,
                                  std::string_view size) {
                l.tcgen05(kind, "e2m1", "e2m1", false, 64, group, scale, size);
            };
            e2m1("mxf4", e8m0_32, ".block32");
            e2m1("mxf4nvf4", e8m0_32, ".block32");
            e2m1("mxf4nvf4", e8m0_16, ".block16");
            e2m1("mxf4nvf4", ue4m3_16, ".block16");
        }
        l.tcgen05("f8f6f4", "e4m3", "e4m3", true, 32, 2);
        for (const format_pair& p : small_pairs) {
            l.tcgen05("f8f6f4", p.a, p.b, false, 32, 2);
            l.tcgen05("mxf8f6f4", p.a, p.b, false, 32, 2, e8m0_32);
        }
    }
    if (c.scaled_mma) {
        l.mma_sync_scaled("mxf4", "2X", "e2m1", "e2m1", 64, e8m0_32);
        l.mma_sync_scaled("mxf4nvf4", "2X", "e2m1", "e2m1", 64, e8m0_32);
        l.mma_sync_scaled("mxf4nvf4", "4X", "e2m1", "e2m1", 64, ue4m3_16);
    }
    return std::move(l.list);
}

std::vector<std::uint8_t> packed_slices(const instruction& i, const gemm::operand_format& format,
                                        std::span<const std::uint32_t> codes, std::size_t rows,
                                        std::size_t steps) {
    const std::size_t k = i.what.instruction_k;
    std::vector<std::uint8_t> bytes(steps * rows * slice_bytes);
    for (std::size_t step = 0; step < steps; ++step) {
        for (std::size_t row = 0; row < rows; ++row) {
            const std::span<std::uint8_t> slice(bytes.data() + (step * rows + row) * slice_bytes,
                                                slice_bytes);
            const std::uint32_t* from = codes.data() + (row * steps + step) * k;
            for (std::size_t e = 0; e < k; ++e) {
                put_bits(slice, first_bit(i, format, e), format.code_bits(), from[e]);
            }
        }
    }
    return bytes;
}

std::vector<std::uint32_t> packed_scales(const vectors::mma_case& what,
                                         std::span<const std::uint8_t> scales, std::size_t rows,
                                         std::size_t steps) {
    std::vector<std::uint32_t> words(steps * rows);
    if (what.scale == nullptr) return words;
    const std::size_t each = what.instruction_k / what.scale->block;
    for (std::size_t step = 0; step < steps; ++step) {
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t byte = 0; byte < 4; ++byte) {
                const std::uint32_t code = scales[(row * steps + step) * each + byte % each];
                words[step * rows + row] |= code << (8 * byte);
            }
        }
    }
    return words;
}

}  // namespace mx::capture
