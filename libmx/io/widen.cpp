// SPDX-License-Identifier: Apache-2.0
#include "libmx/io/widen.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "libmx/base/half.hpp"
#include "libmx/block/stored_codes.hpp"

namespace mx::io {
namespace {

using tensor::dtype;

// Bytes of stored data widened at a time: fits the second-level cache with its result.
constexpr std::size_t widened_piece = 128 << 10;

template <class T>
T load(const std::byte* bytes, std::size_t i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    return value;
}

template <class T, class Convert>
void widen_each(const std::byte* bytes, std::span<float> out, Convert convert) {
    const std::size_t count = out.size();
    float* const to = out.data();
    for (std::size_t i = 0; i < count; ++i) to[i] = convert(load<T>(bytes, i));
}

// base::float_from_half with all cases computed and one chosen by masks: compilers make branches
// of conditions around floating-point arithmetic, and then do not vectorise.
float half(std::uint16_t code) {
    constexpr std::uint32_t rebias = 112u << 23;
    const std::uint32_t magnitude = code & 0x7fffu;
    const std::uint32_t is_small = 0u - static_cast<std::uint32_t>(magnitude < 0x0400u);
    const std::uint32_t is_special = 0u - static_cast<std::uint32_t>(magnitude >= 0x7c00u);
    // Zero and subnormals are an integer times 2^-24; Inf and NaN add the bias twice.
    const std::uint32_t small =
        base::bits_of(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f);
    const std::uint32_t large = (magnitude << 13) + rebias + (rebias & is_special);
    const std::uint32_t sign = (code & 0x8000u) << 16;
    return base::float_from_bits(sign | (small & is_small) | (large & ~is_small));
}

// As widen_each, and counts results that are not the stored value.
template <class T, class Differs>
std::uint64_t round_each(const std::byte* bytes, std::span<float> out, Differs differs) {
    std::uint64_t inexact = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const T value = load<T>(bytes, i);
        out[i] = static_cast<float>(value);  // to nearest even, the only mode the library uses
        inexact += differs(value, out[i]) ? 1u : 0u;
    }
    return inexact;
}

template <class T>
std::uint64_t round_integers(const std::byte* bytes, std::span<float> out) {
    // 2^31, 2^32, 2^63 or 2^64, just beyond T: a value that rounds up to it was not it, and
    // casting it back would overflow.
    const float beyond = std::ldexp(1.0f, std::numeric_limits<T>::digits);
    return round_each<T>(bytes, out, [beyond](T value, float f) {
        return f >= beyond || static_cast<T>(f) != value;
    });
}

// Codes of 4 or 6 bits, least significant first.
void widen_packed(const block::code_table& table, unsigned bits, std::span<const std::byte> bytes,
                  std::size_t bit, std::span<float> out) {
    const unsigned mask = (1u << bits) - 1u;
    for (float& value : out) {
        const std::size_t at = bit / 8;
        unsigned two = std::to_integer<unsigned>(bytes[at]);
        if (bit % 8 + bits > 8) two |= std::to_integer<unsigned>(bytes[at + 1]) << 8;
        value = table[two >> bit % 8 & mask];
        bit += bits;
    }
}

}  // namespace

std::uint64_t widen(dtype type, std::span<const std::byte> bytes, unsigned first_bit,
                    std::span<float> out) {
    if (out.empty()) return 0;
    const tensor::dtype_row& row = tensor::row_of(type);
    assert(row.to_f32 != tensor::widening::none);
    if (row.bits < 8) {
        widen_packed(block::numbers_of(type), static_cast<unsigned>(row.bits), bytes, first_bit,
                     out);
        return 0;
    }
    const std::byte* const from = bytes.data() + first_bit / 8;
    const auto convert = [](auto v) { return static_cast<float>(v); };
    switch (type) {
        case dtype::f32:
            std::memcpy(out.data(), from, out.size_bytes());
            return 0;
        case dtype::bf16:
            widen_each<std::uint16_t>(from, out, base::float_from_bf16);
            return 0;
        case dtype::f16:
            widen_each<std::uint16_t>(from, out, half);
            return 0;
        case dtype::i8:
            widen_each<std::int8_t>(from, out, convert);
            return 0;
        case dtype::u8:
            widen_each<std::uint8_t>(from, out, convert);
            return 0;
        case dtype::i16:
            widen_each<std::int16_t>(from, out, convert);
            return 0;
        case dtype::u16:
            widen_each<std::uint16_t>(from, out, convert);
            return 0;
        case dtype::i32:
            return round_integers<std::int32_t>(from, out);
        case dtype::u32:
            return round_integers<std::uint32_t>(from, out);
        case dtype::i64:
            return round_integers<std::int64_t>(from, out);
        case dtype::u64:
            return round_integers<std::uint64_t>(from, out);
        case dtype::f64:
            return round_each<double>(from, out, [](double value, float f) {
                // NaN differs from itself; without branches, so that the loop vectorises.
                return (value == value) & (static_cast<double>(f) != value);
            });
        default: {
            const block::code_table& table = block::numbers_of(type);
            widen_each<std::uint8_t>(from, out,
                                     [&table](std::uint8_t code) { return table[code]; });
            return 0;
        }
    }
}

std::uint64_t read_f32(const byte_source& source, dtype type, std::uint64_t first,
                       std::span<float> out, std::vector<std::byte>& scratch) {
    const auto bits = static_cast<std::uint64_t>(tensor::row_of(type).bits);
    if (type == dtype::f32) {
        source.read(first * 4, std::as_writable_bytes(out));
        return 0;
    }
    // A multiple of eight elements, so that pieces of packed types begin where the first did.
    const std::size_t piece = widened_piece / static_cast<std::size_t>(bits) * 8 / 8 * 8;
    std::uint64_t inexact = 0;
    while (!out.empty()) {
        const std::size_t count = std::min(out.size(), piece);
        // first * bits may not fit into 64 bits, so bytes and bits are counted apart.
        const std::uint64_t bit = first % 8 * bits;
        const std::uint64_t byte = first / 8 * bits + bit / 8;
        const auto shift = static_cast<unsigned>(bit % 8);
        scratch.resize(static_cast<std::size_t>((shift + count * bits + 7) / 8));
        source.read(byte, scratch);
        inexact += widen(type, scratch, shift, out.first(count));
        out = out.subspan(count);
        first += count;
    }
    return inexact;
}

}  // namespace mx::io
