// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/gguf/gguf_blocks.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/io/gguf/gguf_grids.hpp"

namespace mx::io {
namespace {

unsigned byte_at(const gguf_block& b, std::size_t at) {
    return std::to_integer<unsigned>(b.bytes[at]);
}

std::uint16_t word_at(const gguf_block& b, std::size_t at) {
    const unsigned first = byte_at(b, at);
    const unsigned second = byte_at(b, at + 1);
    return static_cast<std::uint16_t>(b.big_endian ? first << 8 | second : second << 8 | first);
}

float half_at(const gguf_block& b, std::size_t at) { return base::float_from_half(word_at(b, at)); }

float single_at(const gguf_block& b, std::size_t at) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        bits |= static_cast<std::uint32_t>(byte_at(b, at + i))
                << (b.big_endian ? 24 - 8 * i : 8 * i);
    }
    return base::float_from_bits(bits);
}

float signed_at(const gguf_block& b, std::size_t at) {
    return static_cast<float>(static_cast<std::int8_t>(byte_at(b, at)));
}

float number(unsigned code, int less = 0) {
    return static_cast<float>(static_cast<int>(code) - less);
}

// Code i of 16 bytes: the low nibbles are the first half of a block of 32, the high ones the
// second.
unsigned nibble(const gguf_block& b, std::size_t codes, std::size_t i) {
    return byte_at(b, codes + i % 16) >> 4 * (i / 16) & 15u;
}

// The same, with bit i of the four bytes at `fifth` as the fifth. ggml reads them as one number,
// stored as bytes, least significant first.
unsigned five_bits(const gguf_block& b, std::size_t codes, std::size_t fifth, std::size_t i) {
    return nibble(b, codes, i) | (byte_at(b, fifth + i / 8) >> i % 8 & 1u) << 4;
}

// E2M1, doubled, as in ggml; no negative zero.
constexpr std::array<float, 16> doubled_e2m1{0, 1,  2,  3,  4,  6,  8,  12,
                                             0, -1, -2, -3, -4, -6, -8, -12};

// Of IQ4_NL and IQ4_XS.
constexpr std::array<float, 16> uneven_levels{-127, -104, -83, -65, -49, -35, -22, -10,
                                              1,    13,   25,  38,  53,  69,  89,  113};

// Two bits of element i of 256: four parts of 32 share bytes, in each half of the block.
unsigned two_bits(const gguf_block& b, std::size_t codes, std::size_t i) {
    return byte_at(b, codes + i / 128 * 32 + i % 32) >> 2 * (i % 128 / 32) & 3u;
}

// Four bits of element i of 256: two parts of 32 share bytes.
unsigned four_bits(const gguf_block& b, std::size_t codes, std::size_t i) {
    return byte_at(b, codes + i / 64 * 32 + i % 32) >> 4 * (i / 32 % 2) & 15u;
}

// The 6-bit scale and minimum of part k of eight, in the 12 bytes in which Q4_K and Q5_K store
// them.
struct part_of_8 {
    unsigned scale, minimum;
};
part_of_8 six_bits(const gguf_block& b, std::size_t at, std::size_t k) {
    if (k < 4) return {byte_at(b, at + k) & 63u, byte_at(b, at + 4 + k) & 63u};
    const unsigned low = byte_at(b, at + 4 + k);
    return {(low & 15u) | (byte_at(b, at + k - 4) >> 6) << 4, low >> 4 | (byte_at(b, at + k) >> 6)
                                                                             << 4};
}

// ggml's UE4M3, halved for doubled codes.
float half_of_ue4m3(unsigned byte) {
    if (byte == 0x7fu) return 0;
    const int exponent = static_cast<int>(byte >> 3 & 15u);
    const float mantissa = static_cast<float>(byte & 7u);
    return exponent == 0 ? std::ldexp(mantissa, -10) : std::ldexp(mantissa + 8, exponent - 11);
}

// Three-valued digit n of a byte whose digits are fractions of 256.
float ternary(unsigned byte, std::size_t n) {
    static constexpr std::array<unsigned, 5> powers{1, 3, 9, 27, 81};
    return number((byte * powers[n] & 255u) * 3 >> 8, 1);
}

// One bit of each element, eight to a byte.
bool bit_of(const gguf_block& b, std::size_t bits, std::size_t i) {
    return (byte_at(b, bits + i / 8) >> i % 8 & 1u) != 0;
}

// Whether element i of eight is negative under a code of seven bits: the eighth bit makes the
// number of negative ones even.
bool negative(unsigned code, std::size_t i) {
    return ((i < 7 ? code >> i : static_cast<unsigned>(std::popcount(code))) & 1u) != 0;
}

// The scales of parts of 16 elements (32 in IQ3_S) in nibbles, the low one first.
float nibble_at(const gguf_block& b, std::size_t scales, std::size_t part) {
    return number(byte_at(b, scales + part / 2) >> 4 * (part % 2) & 15u);
}

float with_sign(float x, bool minus) { return minus ? -x : x; }

}  // namespace

void decode_q1_0(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 0);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = with_sign(d, !bit_of(b, 2, i));
}

void decode_q4_0(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 0);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = d * number(nibble(b, 2, i), 8);
}

void decode_q4_1(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 0);
    const float m = half_at(b, 2);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = d * number(nibble(b, 4, i)) + m;
}

void decode_q5_0(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 0);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = d * number(five_bits(b, 6, 2, i), 16);
}

void decode_q5_1(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 0);
    const float m = half_at(b, 2);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = d * number(five_bits(b, 8, 4, i)) + m;
}

void decode_q8_0(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 0);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = d * signed_at(b, 2 + i);
}

void decode_q2_k(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 80);
    const float m = half_at(b, 82);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const unsigned scale = byte_at(b, i / 16);
        out[i] = d * number(scale & 15u) * number(two_bits(b, 16, i)) - m * number(scale >> 4);
    }
}

void decode_q3_k(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 108);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t part = i / 16;
        const unsigned scale = (byte_at(b, 96 + part % 8) >> 4 * (part / 8) & 15u) |
                               (byte_at(b, 104 + part % 4) >> 2 * (part / 4) & 3u) << 4;
        const bool high = (byte_at(b, i % 32) >> i / 32 & 1u) != 0;
        out[i] = d * number(scale, 32) * number(two_bits(b, 32, i), high ? 0 : 4);
    }
}

void decode_q4_k(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 0);
    const float m = half_at(b, 2);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const part_of_8 part = six_bits(b, 4, i / 32);
        out[i] = d * number(part.scale) * number(four_bits(b, 16, i)) - m * number(part.minimum);
    }
}

void decode_q5_k(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 0);
    const float m = half_at(b, 2);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const part_of_8 part = six_bits(b, 4, i / 32);
        const unsigned high = byte_at(b, 16 + i % 32) >> i / 32 & 1u;
        const unsigned code = four_bits(b, 48, i) | high << 4;
        out[i] = d * number(part.scale) * number(code) - m * number(part.minimum);
    }
}

void decode_q6_k(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 208);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const unsigned low = byte_at(b, i / 128 * 64 + i % 64) >> 4 * (i % 128 / 64) & 15u;
        const unsigned code = low | two_bits(b, 128, i) << 4;
        out[i] = d * signed_at(b, 192 + i / 16) * number(code, 32);
    }
}

void decode_q8_k(const gguf_block& b, std::span<float> out) {
    const float d = single_at(b, 0);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = d * signed_at(b, 4 + i);
}

void decode_iq1_s(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 0);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const unsigned high = word_at(b, 34 + 2 * (i / 32));
        const unsigned point = byte_at(b, 2 + i / 8) | (high >> 3 * (i / 8 % 4) & 7u) << 8;
        const float shift = (high & 0x8000u) != 0 ? -0.125f : 0.125f;
        out[i] = d * number(2 * (high >> 12 & 7u) + 1) *
                 (static_cast<float>(iq1_grid[point][i % 8]) + shift);
    }
}

void decode_iq1_m(const gguf_block& b, std::span<float> out) {
    // Bytes in ggml, whatever the order of the file: four numbers, whose upper four bits make the
    // half, and whose lower twelve the scales of four parts of 16.
    std::array<unsigned, 4> scales{};
    unsigned half = 0;
    for (std::size_t k = 0; k < 4; ++k) {
        scales[k] = byte_at(b, 48 + 2 * k) | byte_at(b, 49 + 2 * k) << 8;
        half |= scales[k] >> 12 << 4 * k;
    }
    const float d = base::float_from_half(static_cast<std::uint16_t>(half));
    for (std::size_t i = 0; i < out.size(); ++i) {
        const unsigned high = byte_at(b, 32 + i / 16) >> 4 * (i / 8 % 2) & 15u;
        const unsigned point = byte_at(b, i / 8) | (high & 7u) << 8;
        const float shift = (high & 8u) != 0 ? -0.125f : 0.125f;
        out[i] = d * number(2 * (scales[i / 64] >> 3 * (i / 16 % 4) & 7u) + 1) *
                 (static_cast<float>(iq1_grid[point][i % 8]) + shift);
    }
}

void decode_iq2_xxs(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 0);
    for (std::size_t i = 0; i < out.size(); ++i) {
        // Four words for 32 elements: four points of a byte each, then, in 32 bits, four codes of
        // signs and the scale.
        const std::size_t at = 2 + 8 * (i / 32);
        const std::size_t part = i / 8 % 4;
        const unsigned point = word_at(b, at + 2 * (part / 2)) >> 8 * (part % 2) & 255u;
        const unsigned rest = word_at(b, at + 4) | static_cast<unsigned>(word_at(b, at + 6)) << 16;
        out[i] = with_sign(d * (0.5f + number(rest >> 28)) * 0.25f *
                               static_cast<float>(iq2_xxs_grid[point][i % 8]),
                           negative(rest >> 7 * part & 127u, i % 8));
    }
}

void decode_iq2_xs(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 0);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const unsigned word = word_at(b, 2 + 2 * (i / 8));
        out[i] = with_sign(d * (0.5f + nibble_at(b, 66, i / 16)) * 0.25f *
                               static_cast<float>(iq2_xs_grid[word & 511u][i % 8]),
                           negative(word >> 9, i % 8));
    }
}

void decode_iq2_s(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 0);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const unsigned high = byte_at(b, 66 + i / 32) >> 2 * (i / 8 % 4) & 3u;
        const unsigned point = byte_at(b, 2 + i / 8) | high << 8;
        out[i] = with_sign(d * (0.5f + nibble_at(b, 74, i / 16)) * 0.25f *
                               static_cast<float>(iq2_s_grid[point][i % 8]),
                           bit_of(b, 34, i));
    }
}

void decode_iq3_xxs(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 0);
    for (std::size_t i = 0; i < out.size(); ++i) {
        unsigned rest = 0;  // bytes in ggml, least significant first
        for (std::size_t k = 0; k < 4; ++k) rest |= byte_at(b, 66 + i / 32 * 4 + k) << 8 * k;
        out[i] = with_sign(d * (0.5f + number(rest >> 28)) * 0.5f *
                               static_cast<float>(iq3_xxs_grid[byte_at(b, 2 + i / 4)][i % 4]),
                           negative(rest >> 7 * (i / 8 % 4) & 127u, i % 8));
    }
}

void decode_iq3_s(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 0);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const unsigned high = bit_of(b, 66, i / 4) ? 256u : 0u;
        const unsigned point = byte_at(b, 2 + i / 4) | high;
        out[i] = with_sign(
            d * (1 + 2 * nibble_at(b, 106, i / 32)) * static_cast<float>(iq3_s_grid[point][i % 4]),
            bit_of(b, 74, i));
    }
}

void decode_iq4_nl(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 0);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = d * uneven_levels[nibble(b, 2, i)];
}

void decode_iq4_xs(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 0);
    const unsigned high = word_at(b, 2);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t part = i / 32;
        const unsigned scale =
            (byte_at(b, 4 + part / 2) >> 4 * (part % 2) & 15u) | (high >> 2 * part & 3u) << 4;
        out[i] = d * number(scale, 32) * uneven_levels[nibble(b, 8 + 16 * part, i % 32)];
    }
}

void decode_tq1_0(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 52);
    for (std::size_t i = 0; i < out.size(); ++i) {
        // Five digits in each of 32 bytes, then of 16, then four in each of four.
        out[i] = d * (i < 160   ? ternary(byte_at(b, i % 32), i / 32)
                      : i < 240 ? ternary(byte_at(b, 32 + (i - 160) % 16), (i - 160) / 16)
                                : ternary(byte_at(b, 48 + (i - 240) % 4), (i - 240) / 4));
    }
}

void decode_tq2_0(const gguf_block& b, std::span<float> out) {
    const float d = half_at(b, 64);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = d * number(two_bits(b, 0, i), 1);
}

void decode_mxfp4(const gguf_block& b, std::span<float> out) {
    const float half = std::ldexp(1.0f, static_cast<int>(byte_at(b, 0)) - 128);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = doubled_e2m1[nibble(b, 1, i)] * half;
}

void decode_nvfp4(const gguf_block& b, std::span<float> out) {
    for (std::size_t part = 0; part < 4; ++part) {
        const float scale = half_of_ue4m3(byte_at(b, part));
        for (std::size_t i = 0; i < 16; ++i) {
            const unsigned code = byte_at(b, 4 + 8 * part + i % 8) >> 4 * (i / 8) & 15u;
            out[16 * part + i] = doubled_e2m1[code] * scale;
        }
    }
}

}  // namespace mx::io
