// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/vectors/mma_tile_maker.hpp"

#include <algorithm>
#include <bit>

namespace mx::conformance::vectors {
namespace {

// The largest finite magnitude without the dropped bits.
std::uint32_t largest(const gemm::operand_format& f) {
    const std::uint32_t ones = (1u << (f.exponent_bits + f.mantissa_bits)) - 1u;
    if (f.special == gemm::operand_specials::fn) return ones - 1u;
    if (f.special == gemm::operand_specials::ieee) return ones - (1u << f.mantissa_bits);
    return ones;
}

std::uint32_t sign_bit(const gemm::operand_format& f) { return 1u << (f.code_bits() - 1); }

std::uint32_t all_bits(const gemm::operand_format& f) {
    return f.code_bits() == 32 ? ~0u : (1u << f.code_bits()) - 1u;
}

}  // namespace

int greatest_exponent(const gemm::operand_format& f) {
    return static_cast<int>(largest(f) >> f.mantissa_bits) - f.bias;
}

bool is_special(const gemm::operand_format& f, std::uint32_t code) {
    return (code & ~sign_bit(f) & all_bits(f)) >> f.dropped_bits > largest(f);
}

std::uint32_t nearest_code(const gemm::operand_format& f, bool negative, std::uint64_t significand,
                           int exponent) {
    std::uint64_t magnitude = 0;
    if (significand != 0) {
        const int leading = static_cast<int>(std::bit_width(significand)) - 1 + exponent;
        const int binade = std::max(leading, f.least_exponent());
        const int shift = std::min(binade - f.mantissa_bits - exponent, 63);
        const std::uint64_t kept = shift > 0
                                       ? (significand + (std::uint64_t{1} << (shift - 1))) >> shift
                                       : significand << -shift;
        magnitude =
            (static_cast<std::uint64_t>(binade - f.least_exponent()) << f.mantissa_bits) + kept;
    }
    const auto code = static_cast<std::uint32_t>(std::min<std::uint64_t>(magnitude, largest(f)))
                      << f.dropped_bits;
    return negative ? code | sign_bit(f) : code;
}

std::uint32_t power_code(const gemm::operand_format& f, int exponent) {
    const int low = f.least_exponent() - f.mantissa_bits;
    return nearest_code(f, false, 1, std::clamp(exponent, low, greatest_exponent(f)));
}

std::uint32_t negated(const gemm::operand_format& f, std::uint32_t code) {
    return code ^ sign_bit(f);
}

mma_tile_maker::mma_tile_maker(const mma_case& what, word_stream& words, std::uint64_t index,
                               mma_tile& tile)
    : what_(what), words_(words), index_(index), tile_(tile) {
    tile_.a.assign(mma_tile_rows * what.depth(), 0u);
    tile_.b.assign(mma_tile_cols * what.depth(), 0u);
    tile_.c.assign(mma_tile_outputs, 0u);
    const std::uint8_t one = scale(0);
    tile_.sfa.assign(mma_tile_rows * what.blocks(), one);
    tile_.sfb.assign(mma_tile_cols * what.blocks(), one);
}

std::uint32_t mma_tile_maker::finite(const gemm::operand_format& f) {
    const std::uint32_t code = words_.next() & all_bits(f);
    if (!is_special(f, code)) return code;
    // The number below the all-ones mantissa, or one binade below the special values.
    const int turned = f.special == gemm::operand_specials::ieee ? f.mantissa_bits : 0;
    return code & ~(1u << (turned + f.dropped_bits));
}

std::uint32_t mma_tile_maker::near(const gemm::operand_format& f, int exponent) {
    const std::uint32_t word = words_.next();
    const std::uint64_t significand = 0x1000000u | (word >> 8);
    const int least = f.least_exponent() - f.mantissa_bits - 1;
    const bool negative = (word & 1u) != 0;
    return nearest_code(f, negative, significand, std::max(exponent, least) - 24);
}

std::uint32_t mma_tile_maker::normal(const gemm::operand_format& f, int exponent) {
    const std::int32_t sum = words_.bell();
    const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
    return nearest_code(f, sum < 0, magnitude, exponent - 16);
}

std::uint32_t mma_tile_maker::tiny(const gemm::operand_format& f) {
    const std::uint32_t word = words_.next();
    const std::uint32_t magnitude =
        (word & 6u) == 0 ? 0u : words_.below(2u << f.mantissa_bits) << f.dropped_bits;
    return (word & 1u) != 0 ? magnitude | sign_bit(f) : magnitude;
}

std::uint8_t mma_tile_maker::scale(int exponent) const {
    if (what_.scale == nullptr) return 0;
    if (what_.scale->format == "ue4m3") {
        return static_cast<std::uint8_t>(exponent < -6 ? 1 << std::clamp(exponent + 9, 0, 2)
                                                       : (std::min(exponent, 8) + 7) << 3);
    }
    return static_cast<std::uint8_t>(std::clamp(exponent + 127, 0, 254));
}

int mma_tile_maker::uniform_scales(int exponent_a, int exponent_b) {
    if (what_.scale == nullptr) return 0;
    const int low = what_.scale->format == "ue4m3" ? -9 : -127;
    const int high = what_.scale->format == "ue4m3" ? 8 : 127;
    exponent_a = std::clamp(exponent_a, low, high);
    exponent_b = std::clamp(exponent_b, low, high);
    for (std::uint8_t& x : tile_.sfa) x = scale(exponent_a);
    for (std::uint8_t& x : tile_.sfb) x = scale(exponent_b);
    return exponent_a + exponent_b;
}

}  // namespace mx::conformance::vectors
