// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "libmx/conformance/vectors/mma_fills.hpp"

namespace mx::conformance::vectors {
namespace {

using operand_format = gemm::operand_format;

bool ue4m3_scales(const mma_case& what) {
    return what.scale != nullptr && what.scale->format == "ue4m3";
}

// Scales around 1.
void ordinary_scales(mma_tile_maker& t, int spread) {
    const int reach = ue4m3_scales(t.what()) ? std::min(spread, 6) : spread;
    t.scales([&] { return t.scale(t.words().between(-reach, reach)); });
}

// The smallest exponent of products in the case's formats, without scales.
int least_product(const mma_case& w) {
    return w.a->least_exponent() - w.a->mantissa_bits + w.b->least_exponent() - w.b->mantissa_bits;
}

}  // namespace

bool reaches_floor(const mma_case& what) {
    if (what.scale != nullptr) return !ue4m3_scales(what);
    return least_product(what) <= (what.f16 ? -26 : -150);
}

namespace {

void fill_bits(mma_tile_maker& t) {
    // Keep one special value in 16 (in a chain, one in 16 per instruction); otherwise few outputs
    // would be finite.
    const auto rarity = static_cast<std::uint32_t>(16 * t.what().steps);
    const auto any_code = [&](const operand_format& f) {
        return t.words().next() >> (32 - f.code_bits());
    };
    t.elements([&](const operand_format& f) {
        const std::uint32_t code = any_code(f);
        const bool kept = !is_special(f, code) || t.words().below(rarity) == 0;
        return kept ? code : t.finite(f);
    });
    t.accumulators(any_code);
    t.scales([&] { return static_cast<std::uint8_t>(t.words().next() >> 24); });
}

void fill_finite(mma_tile_maker& t) {
    t.elements([&](const operand_format& f) { return t.finite(f); });
    t.accumulators([&](const operand_format& f) { return t.finite(f); });
    t.scales([&] {
        const auto code = static_cast<std::uint8_t>(t.words().next() >> 24);
        const bool nan = ue4m3_scales(t.what()) ? (code & 0x7fu) == 0x7fu : code == 0xffu;
        return nan ? static_cast<std::uint8_t>(code - 1u) : code;
    });
}

void fill_gauss(mma_tile_maker& t) {
    t.elements([&](const operand_format& f) { return t.normal(f, 0); });
    t.accumulators([&](const operand_format& f) { return t.normal(f, 2); });
    ordinary_scales(t, 3);
}

void fill_wide_products(mma_tile_maker& t) {
    const auto spread = [](const operand_format& f) {
        return std::min(14, (greatest_exponent(f) - f.least_exponent()) / 2);
    };
    t.elements([&](const operand_format& f) {
        const int middle = (greatest_exponent(f) + f.least_exponent()) / 2;
        return t.near(f, middle + t.words().between(-spread(f), spread(f)));
    });
    ordinary_scales(t, 12);
    t.accumulators([&](const operand_format& f) { return t.near(f, t.words().between(-30, 20)); });
}

void fill_cancel(mma_tile_maker& t) {
    t.elements([&](const operand_format& f) { return t.normal(f, 0); });
    const std::size_t step = t.what().instruction_k;
    for (std::size_t k = 0; k < t.depth(); k += 2) {
        if (k % step + 4 >= step) continue;  // leave small remainders
        for (std::size_t row = 0; row < mma_tile_rows; ++row) t.a(row, k + 1) = t.a(row, k);
        for (std::size_t col = 0; col < mma_tile_cols; ++col) {
            t.b(col, k + 1) = negated(t.b_format(), t.b(col, k));
        }
    }
    for (std::size_t k = 0; k < t.depth(); ++k) {
        if (k % step + 4 < step) continue;
        for (std::size_t row = 0; row < mma_tile_rows; ++row) {
            t.a(row, k) = t.near(t.a_format(), t.words().between(-14, -6));
        }
    }
    t.accumulators([&](const operand_format& f) {
        return t.words().below(4) == 0 ? 0u : t.near(f, t.words().between(-24, -8));
    });
    ordinary_scales(t, 2);
}

void fill_tiny_products(mma_tile_maker& t) {
    t.elements([&](const operand_format& f) { return t.tiny(f); });
    t.accumulators([&](const operand_format& f) { return t.tiny(f); });
    const std::uint32_t end = ue4m3_scales(t.what()) ? 12 : 100;
    t.scales([&] { return static_cast<std::uint8_t>(t.words().below(end)); });
}

void fill_huge_products(mma_tile_maker& t) {
    const int most = t.what().f16 ? 15 : 127;
    const int top_a = greatest_exponent(t.a_format());
    const int top_b = greatest_exponent(t.b_format());
    // Odd tiles, in formats whose largest products exceed the accumulator: sums around its largest
    // value.
    const int spare = std::max(top_a + top_b - (most - 3), 0) * static_cast<int>(t.index() % 2);
    t.elements([&](const operand_format& f) {
        const int top = greatest_exponent(f) - (spare + 1) / 2;
        return t.near(f, top - static_cast<int>(t.words().below(3)));
    });
    t.accumulators([&](const operand_format& f) {
        return t.near(f, greatest_exponent(f) - static_cast<int>(t.words().below(4)));
    });
    if (t.what().scale == nullptr) return;
    if (ue4m3_scales(t.what())) {
        t.scales([&] { return static_cast<std::uint8_t>(0x7eu - t.words().below(16)); });
        return;
    }
    // Sums around 2^128, for any elements.
    const int each = (most - 3 - top_a - top_b) / 2;
    t.scales([&] { return t.scale(each + t.words().between(-1, 2)); });
}

void fill_align(mma_tile_maker& t) {
    const operand_format& f = t.a_format();
    const std::size_t step = t.what().instruction_k;
    const int scale_a = t.words().between(-4, 4);
    const int scale_b = t.words().between(-4, 4);
    const int sum = t.uniform_scales(scale_a, scale_b);
    const bool subnormal = t.index() % 3 == 2;
    const int top_a = subnormal ? f.least_exponent() - 1 : std::min(greatest_exponent(f) - 1, 10);
    const int top_b = std::min(greatest_exponent(t.b_format()) - 1, 10);
    // No number lies below the subnormals of wide formats.
    const bool alone = subnormal && f.least_exponent() < -20;
    t.elements([&](const operand_format& x) {
        // Far below the two terms that cancel, as far as the format allows.
        return alone || t.words().below(2) == 0 ? 0u : t.near(x, t.words().between(-12, -4));
    });
    for (std::size_t base = 0; base < t.depth(); base += step) {
        const std::size_t first =
            base + 2 * std::size_t{t.words().below(static_cast<std::uint32_t>(step / 2))};
        for (std::size_t row = 0; row < mma_tile_rows; ++row) {
            const std::uint32_t code =
                subnormal
                    ? nearest_code(f, false, 1 + t.words().below((1u << f.mantissa_bits) - 1u),
                                   f.least_exponent() - f.mantissa_bits)
                    : t.near(f, top_a);
            t.a(row, first) = code;
            t.a(row, first + 1) = code;
        }
        for (std::size_t col = 0; col < mma_tile_cols; ++col) {
            const std::uint32_t code = t.near(t.b_format(), top_b);
            t.b(col, first) = code;
            t.b(col, first + 1) = negated(t.b_format(), code);
        }
    }
    t.accumulators([&](const operand_format& x) {
        return t.near(x, top_a + top_b + sum - t.words().between(14, 34));
    });
}

void fill_floor(mma_tile_maker& t) {
    if (!reaches_floor(t.what())) return fill_tiny_products(t);
    const int goal = t.what().f16 ? -24 : -146;
    if (t.what().scale != nullptr) {
        t.elements([&](const operand_format& f) { return t.near(f, t.words().between(-1, 1)); });
        t.scales([&] { return t.scale(goal / 2 + t.words().between(-6, 6)); });
        return;
    }
    t.elements(
        [&](const operand_format& f) { return t.near(f, goal / 2 + t.words().between(-8, 4)); });
}

// THE LIST.
constexpr std::array distribution_rows{
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
};

}  // namespace

std::span<const mma_distribution> random_distributions() { return distribution_rows; }

}  // namespace mx::conformance::vectors
