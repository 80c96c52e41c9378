// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/gguf/gguf_blocks.hpp"

#include <array>
#include <cmath>
#include <cstdint>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"

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

}  // namespace

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
