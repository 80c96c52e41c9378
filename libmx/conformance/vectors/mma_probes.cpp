// SPDX-License-Identifier: Apache-2.0
// Directed probes: tiles that are zero except for the few terms under test.
#include <algorithm>
#include <array>

#include "libmx/conformance/vectors/mma_fills.hpp"

namespace mx::conformance::vectors {
namespace {

using operand_format = gemm::operand_format;

int top_of(const operand_format& f) { return std::min(greatest_exponent(f), 20); }

int bottom_of(const operand_format& f) {
    return std::max(f.least_exponent() - f.mantissa_bits, -20);
}

constexpr int tile_rows = mma_tile_rows;
constexpr int tile_cols = mma_tile_cols;

// Fills column `k` of A with make(row) and row `k` of B with make(col).
template <typename Make>
void set_a(mma_tile_maker& t, std::size_t k, Make make) {
    for (int row = 0; row < tile_rows; ++row) t.a(static_cast<std::size_t>(row), k) = make(row);
}
template <typename Make>
void set_b(mma_tile_maker& t, std::size_t k, Make make) {
    for (int col = 0; col < tile_cols; ++col) t.b(static_cast<std::size_t>(col), k) = make(col);
}

template <typename Make>
void set_c(mma_tile_maker& t, Make make) {
    for (int row = 0; row < tile_rows; ++row) {
        for (int col = 0; col < tile_cols; ++col) {
            t.c(static_cast<std::size_t>(row), static_cast<std::size_t>(col)) = make(row, col);
        }
    }
}

// Sets the scale codes of a block of k to of_a(row) and of_b(col).
template <typename OfA, typename OfB>
void set_scales(mma_tile_maker& t, std::size_t block, OfA of_a, OfB of_b) {
    for (int row = 0; row < tile_rows; ++row)
        t.sfa(static_cast<std::size_t>(row), block) = of_a(row);
    for (int col = 0; col < tile_cols; ++col)
        t.sfb(static_cast<std::size_t>(col), block) = of_b(col);
}

std::size_t last_step(const mma_tile_maker& t) { return t.depth() - t.what().instruction_k; }

std::size_t eight_tiles(const mma_case&) { return 8; }
std::size_t floor_tiles(const mma_case& what) { return reaches_floor(what) ? 8 : 0; }
std::size_t group_tiles(const mma_case& what) { return what.instruction_k == 64 ? 8 : 0; }
std::size_t scaled_tiles(const mma_case& what) { return what.scale == nullptr ? 0 : 8; }
// 256 x 256 pairs, 16 x 8 per tile; for single instructions only.
std::size_t scale_pair_tiles(const mma_case& what) {
    return what.scale == nullptr || what.steps != 1 ? 0 : 512;
}

// 2^x, -2^x and a term 2^(x - j), j >= 20: whether it survives shows how many bits are kept below
// the alignment exponent. In even tiles the small term is a product, as far as the formats allow;
// in odd tiles it is c.
void probe_alignment_bits(mma_tile_maker& t) {
    const int top_a = top_of(t.a_format());
    const int top_b = top_of(t.b_format());
    const std::size_t k = last_step(t) + 4 * (t.index() % (t.what().instruction_k / 4));
    set_a(t, k, [&](int) { return power_code(t.a_format(), top_a); });
    set_a(t, k + 1, [&](int) { return negated(t.a_format(), power_code(t.a_format(), top_a)); });
    set_b(t, k, [&](int) { return power_code(t.b_format(), top_b); });
    set_b(t, k + 1, [&](int) { return power_code(t.b_format(), top_b); });
    if (t.index() % 2 == 0) {
        const int low_a = bottom_of(t.a_format());
        const int low_b = bottom_of(t.b_format());
        set_a(t, k + 2,
              [&](int row) { return power_code(t.a_format(), std::max(top_a - 10 - row, low_a)); });
        set_b(t, k + 2,
              [&](int col) { return power_code(t.b_format(), std::max(top_b - 10 - col, low_b)); });
        return;
    }
    set_c(t, [&](int row, int col) {
        const int j = 20 + (row * tile_cols + col) % 21;
        const std::uint32_t code = power_code(t.c_format(), top_a + top_b - j);
        return t.index() % 4 == 1 ? code : negated(t.c_format(), code);
    });
}

// The largest product has a subnormal operand. The bits of c that remain show to which exponent it
// is aligned. Tries each of its mantissas.
void probe_subnormal_largest(mma_tile_maker& t) {
    const operand_format& f = t.a_format();
    const int top = top_of(t.b_format());
    const std::size_t k = last_step(t);
    const std::uint32_t count = (1u << f.mantissa_bits) - 1u;
    set_a(t, k, [&](int row) {
        const std::uint32_t significand =
            1u + static_cast<std::uint32_t>(static_cast<std::uint64_t>(row) + t.index()) % count;
        return nearest_code(f, false, significand, f.least_exponent() - f.mantissa_bits);
    });
    set_b(t, k, [&](int) { return power_code(t.b_format(), top); });
    set_c(t, [&](int, int col) {
        const int below = 1 + 2 * col + static_cast<int>(t.index() % 8);
        const std::uint32_t c =
            t.near(t.c_format(), f.least_exponent() - f.mantissa_bits + top - below);
        return t.index() % 2 == 0 ? c | 1u : negated(t.c_format(), c) | 1u;
    });
}

// c = 0 and few products from 2^-149 down to 2^-180 (results in f16: from 2^-24 down).
void probe_floor(mma_tile_maker& t) {
    const int goal = t.what().f16 ? -20 : -144;
    const std::size_t k = last_step(t);
    const int first = goal - static_cast<int>(t.index() % 4);
    if (t.what().scale != nullptr) {
        for (std::size_t block = 0; block < t.what().blocks(); ++block) {
            set_scales(
                t, block, [&](int row) { return t.scale(first / 2 - row); },
                [&](int col) { return t.scale(first - first / 2 - 2 * col); });
        }
    }
    const int share = t.what().scale != nullptr ? 0 : first / 2;
    for (std::size_t i = 0; i < 3; ++i) {
        set_a(t, k + i, [&](int row) {
            const int e = t.what().scale != nullptr ? 0 : share - row;
            const std::uint32_t code = t.near(t.a_format(), e);
            return t.index() < 4 ? power_code(t.a_format(), e) : code;
        });
        set_b(t, k + i, [&](int col) {
            const int e = t.what().scale != nullptr ? 0 : first - share - 2 * col;
            return t.index() < 4 ? power_code(t.b_format(), e) : t.near(t.b_format(), e);
        });
    }
}

// One group of 16 with a large scale cancels; the others are far smaller. Shows whether a group
// that cancels raises the alignment exponent.
void probe_group_cancels(mma_tile_maker& t) {
    const std::size_t k = last_step(t);
    const std::size_t block = t.what().scale == nullptr ? 32 : t.what().scale->block;
    const std::size_t high =
        t.index() % 2 == 0 ? 0 : 64 - block;   // index of the block with the large scale
    const bool all_zero = t.index() % 4 >= 2;  // zeros instead of a cancellation
    for (std::size_t i = 0; i < 64; ++i) {
        const bool large = i / block == high / block;
        set_a(t, k + i, [&](int) {
            if (large) return all_zero ? 0u : power_code(t.a_format(), 1);
            return t.finite(t.a_format());
        });
        set_b(t, k + i, [&](int) {
            if (!large) return t.finite(t.b_format());
            const std::uint32_t code = power_code(t.b_format(), 1);
            return i % 2 == 0 ? code : negated(t.b_format(), code);
        });
    }
    for (std::size_t b = 0; b < t.what().blocks(); ++b) {
        const bool large = (b * block) % 64 / block == high / block && b * block >= k;
        set_scales(
            t, b, [&](int row) { return t.scale(large ? 8 : 6 - row); },
            [&](int col) { return t.scale(large ? 8 : 2 - 3 * col); });
    }
}

// One product of 1 under every pair of scale codes, including NaN and the ignored sign of ue4m3.
void probe_scale_pairs(mma_tile_maker& t) {
    const int first_a = static_cast<int>(t.index() / 32) * tile_rows;
    const int first_b = static_cast<int>(t.index() % 32) * tile_cols;
    const std::size_t k = 16 * (t.index() % (t.what().instruction_k / 16));
    set_a(t, k, [&](int) { return power_code(t.a_format(), 0); });
    set_b(t, k, [&](int) { return power_code(t.b_format(), 0); });
    set_scales(
        t, k / t.what().scale->block,
        [&](int row) { return static_cast<std::uint8_t>(first_a + row); },
        [&](int col) { return static_cast<std::uint8_t>(first_b + col); });
}

// NaN scales over zeros: of A in some rows, of B in some columns; c is added as usual.
void probe_nan_scales(mma_tile_maker& t) {
    const auto nan = static_cast<std::uint8_t>(t.what().scale->format == "ue4m3" ? 0x7f : 0xff);
    const std::size_t block = t.index() % t.what().blocks();
    for (std::size_t row = 0; row < mma_tile_rows; row += 3) t.sfa(row, block) = nan;
    for (std::size_t col = 1; col < mma_tile_cols; col += 4) t.sfb(col, block) = nan;
    if (t.index() % 2 == 1) {
        t.elements([&](const operand_format& f) { return negated(f, 0u) * t.words().below(2); });
    }
    set_c(t, [&](int row, int) { return row % 2 == 0 ? 0u : t.near(t.c_format(), 0); });
}

// Products whose partial sums exceed 2^128 and are brought back by other products or by c. In
// formats that cannot reach 2^128, c is at the end of its own range.
void probe_overflow(mma_tile_maker& t) {
    const std::size_t k = last_step(t);
    const int most = t.what().f16 ? 15 : 127;
    const int elements = greatest_exponent(t.a_format()) + greatest_exponent(t.b_format());
    const int each =
        t.uniform_scales((most - elements) / 2, most - elements - (most - elements) / 2);
    const int total = std::min(most, elements + each);
    const int share = total - each - std::min(greatest_exponent(t.b_format()), (total - each) / 2);
    for (std::size_t i = 0; i < 4; ++i) {
        set_a(t, k + i, [&](int row) {
            const std::uint32_t code = power_code(t.a_format(), share);
            return i >= 2 && row % 2 == 0 ? negated(t.a_format(), code) : code;
        });
        set_b(t, k + i, [&](int) { return power_code(t.b_format(), total - each - share); });
    }
    set_c(t, [&](int row, int col) {
        const operand_format& f = t.c_format();
        const int below = col - 1;
        const std::uint32_t code =
            col == 0 ? nearest_code(f, false, 1, 1000) : power_code(f, total + 2 - below);
        if (t.index() % 4 == 0) return 0u;
        return (static_cast<std::uint64_t>(row) + t.index()) % 3 == 0 ? code : negated(f, code);
    });
}

// Zero sums: products all +0, all -0 or cancelling, added to c = +0 or -0.
void probe_zeros(mma_tile_maker& t) {
    const std::uint32_t minus_a = negated(t.a_format(), 0u);
    for (std::size_t k = 0; k < t.depth(); ++k) {
        set_a(t, k, [&](int row) {
            if (row % 4 == 1) return minus_a;
            if (row % 4 == 2) return k % 2 == 0 ? minus_a : 0u;
            return row % 4 == 3 ? power_code(t.a_format(), 0) : 0u;
        });
        set_b(t, k, [&](int col) {
            const std::uint32_t one = power_code(t.b_format(), 0);
            if (col % 2 == 1) return 0u;
            return k % 2 == 0 ? one : negated(t.b_format(), one);
        });
    }
    set_c(t, [&](int row, int col) {
        const bool minus = t.index() % 3 == 0   ? false
                           : t.index() % 3 == 1 ? true
                                                : (row / 4 + col / 2) % 2 == 1;
        return minus ? negated(t.c_format(), 0u) : 0u;
    });
}

// Sums of both signs below the smallest number of the result, alone or added to c of that size.
void probe_underflow(mma_tile_maker& t) {
    const std::size_t k = last_step(t);
    const int goal = t.what().f16 ? -23 : -147;
    if (t.what().scale != nullptr) t.uniform_scales(goal / 2, goal - goal / 2);
    const bool scaled = t.what().scale != nullptr;
    set_a(t, k, [&](int row) {
        const int e = (scaled ? 0 : goal / 2) - row / 2;
        const std::uint32_t code = power_code(t.a_format(), e);
        return row % 2 == 0 ? code : negated(t.a_format(), code);
    });
    set_b(t, k,
          [&](int col) { return power_code(t.b_format(), (scaled ? 0 : goal - goal / 2) - col); });
    set_c(t, [&](int row, int) {
        const auto least = static_cast<std::uint32_t>(row % 3);
        const std::uint32_t code = t.index() % 2 == 0 ? 0u : least;
        return t.index() % 4 == 3 ? negated(t.c_format(), code) : code;
    });
}

// THE LIST.
constexpr std::array probe_rows{
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

}  // namespace

std::span<const mma_distribution> directed_probes() { return probe_rows; }

}  // namespace mx::conformance::vectors
