// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/vectors/mma_inputs.hpp"

#include <fmt/format.h>

#include <array>

#include "libmx/conformance/vectors/mma_fills.hpp"
#include "libmx/conformance/vectors/output_hash.hpp"

namespace mx::conformance::vectors {
namespace {

constexpr std::array list{
    mma_distribution{"bits", "uniform bit patterns, specials thinned, all scale codes", fill_bits},
    mma_distribution{"finite", "uniform finite patterns", fill_finite},
    mma_distribution{"gauss", "near a normal law", fill_gauss},
    mma_distribution{"wide", "wide spread of exponents: truncation", fill_wide_products},
    mma_distribution{"cancel", "pairs that cancel and small remainders", fill_cancel},
    mma_distribution{"tiny", "zeros, -0, subnormal codes, small scales", fill_tiny_products},
    mma_distribution{"huge", "the largest codes: overflow", fill_huge_products},
    mma_distribution{"align", "the two largest products cancel, one may be of a subnormal code",
                     fill_align},
    mma_distribution{"floor", "c = 0 and products at the alignment floor; else a second tiny set",
                     fill_floor},
    mma_distribution{"discard", "uniform finite patterns, the accumulator not read", fill_finite,
                     false},
    mma_distribution{"probe_alignment", "2^x, -2^x and one term 20 to 40 binades below",
                     probe_alignment_bits, true, eight_tiles},
    mma_distribution{"probe_subnormal", "a subnormal operand in the largest term",
                     probe_subnormal_largest, true, eight_tiles},
    mma_distribution{"probe_floor", "c = 0 and products of 2^-149 to 2^-180", probe_floor, true,
                     floor_tiles},
    mma_distribution{"probe_group", "a group of 16 cancels, others lie far below",
                     probe_group_cancels, true, group_tiles},
    mma_distribution{"probe_scales", "a product of 1 under every pair of scale codes",
                     probe_scale_pairs, true, scale_pair_tiles},
    mma_distribution{"probe_nan_scale", "NaN scales over zeros", probe_nan_scales, true,
                     scaled_tiles},
    mma_distribution{"probe_overflow", "partial sums beyond the largest number that cancel",
                     probe_overflow, true, eight_tiles},
    mma_distribution{"probe_zeros", "products of +0, -0 or cancelling on c = +0 and -0",
                     probe_zeros, true, eight_tiles},
    mma_distribution{"probe_zeros_discard", "the same, the accumulator not read", probe_zeros,
                     false, eight_tiles},
    mma_distribution{"probe_underflow", "sums below the least number, of both signs",
                     probe_underflow, true, eight_tiles},
};

std::string stream_name(const mma_case& what, const mma_distribution& d, std::uint64_t index) {
    const std::string scale = what.scale == nullptr
                                  ? "none"
                                  : fmt::format("{}/{}", what.scale->format, what.scale->block);
    return fmt::format("{} {} {} {} {} {}x{} {} {}", mma_inputs_version, what.a->name, what.b->name,
                       scale, what.f16 ? "f16" : "f32", what.steps, what.instruction_k, d.name,
                       index);
}

}  // namespace

const gemm::operand_format& mma_case::accumulator() const {
    static const gemm::operand_format* const half = gemm::find_operand_format("f16");
    static const gemm::operand_format* const single = gemm::find_operand_format("f32");
    return f16 ? *half : *single;
}

std::span<const mma_distribution> mma_distributions() { return list; }

const mma_distribution* find_mma_distribution(std::string_view name) {
    for (const mma_distribution& d : list) {
        if (d.name == name) return &d;
    }
    return nullptr;
}

mma_tile generate_mma_tile(const mma_case& what, const mma_distribution& d, std::uint64_t seed,
                           std::uint64_t index) {
    word_stream words({seed, base::tensor_id(stream_name(what, d, index))});
    mma_tile tile;
    mma_tile_maker maker(what, words, index, tile);
    d.fill(maker);
    return tile;
}

std::uint64_t hash_of(const mma_tile& tile, std::uint64_t index) {
    std::uint64_t place = index << 32;
    std::uint64_t sum = 0;
    const auto add = [&](const auto& values) {
        for (const auto value : values) sum += hash_term(place++, value);
    };
    add(tile.a);
    add(tile.b);
    add(tile.sfa);
    add(tile.sfb);
    add(tile.c);
    return sum;
}

}  // namespace mx::conformance::vectors
