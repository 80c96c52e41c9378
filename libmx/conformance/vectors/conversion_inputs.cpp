// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/vectors/conversion_inputs.hpp"

#include <fmt/format.h>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/conformance/vectors/output_hash.hpp"
#include "libmx/conformance/vectors/word_stream.hpp"
#include "libmx/format/decode.hpp"

namespace mx::conformance::vectors {
namespace {

constexpr std::array nan_payloads{0x7f800001u, 0x7fbfffffu, 0x7fc00000u, 0x7fc12345u, 0x7fffffffu,
                                  0xff800001u, 0xffbfffffu, 0xffc00000u, 0xffc12345u, 0xffffffffu};

// Mantissa widths of the target formats: determine the float32 mantissas of codes and of ties.
constexpr std::array<int, 4> mantissa_widths{0, 1, 2, 3};

struct value_range {
    std::uint32_t one, subnormal, vanishing, largest, beyond;  // float32 bits
};

value_range range_of(std::string_view name) {
    if (name == "bf16") return {0x3f812345u, 0x00012345u, 0x00000123u, 0x7f7f0000u, 0x7f7fffffu};
    if (name == "f16") return {0x3f812345u, 0x33a12345u, 0x33000123u, 0x477fe000u, 0x477ff123u};
    const format::element_format& f = *format::find_element_format(name);
    const float least = format::decode(f, 1);
    const float most = format::decode(f, f.max_code());
    return {0x3f912345u, base::bits_of(least * 0.8125F), base::bits_of(least * 0.3125F),
            base::bits_of(most), base::bits_of(most * 1.0625F)};
}

void append_sweep(std::vector<stochastic_input>& list, const stochastic_narrowing& row, int value,
                  std::uint32_t x) {
    stochastic_input in{{0x3f912345u, 0xbf912345u, 0x3fa54321u, 0xbfa54321u}, 0};
    in.x[static_cast<std::size_t>(value)] = x;
    if (row.values == 2) in.x[2] = in.x[3] = 0;
    for (int byte = 0; byte < 4; ++byte) {
        const std::uint32_t others = ~(0xffu << (8 * byte));
        for (std::uint32_t bits = 0; bits < 256; ++bits) {
            in.random = bits << (8 * byte);
            list.push_back(in);
            in.random |= others;
            list.push_back(in);
        }
    }
    for (int bit = 0; bit < 32; ++bit) {
        in.random = 1u << bit;
        list.push_back(in);
    }
}

}  // namespace

std::vector<std::uint32_t> all_halves(conversion_input from) {
    std::vector<std::uint32_t> all(65536);
    for (std::uint32_t i = 0; i < all.size(); ++i) {
        const auto half = static_cast<std::uint16_t>(i);
        all[i] =
            from == conversion_input::f16x2 ? base::bits_of(base::float_from_half(half)) : i << 16;
    }
    return all;
}

std::vector<std::uint32_t> stratified_floats(std::uint64_t seed) {
    word_stream words({seed, base::tensor_id(fmt::format("{} strata", conversion_inputs_version))});
    std::vector<std::uint32_t> all;
    for (std::uint32_t cell = 0; cell < float_cells; ++cell) {
        const std::uint32_t first = cell << 23;
        const auto add = [&](std::uint32_t mantissa) {
            all.push_back(first | (mantissa & base::f32_mantissa_mask));
        };
        for (std::uint32_t i = 0; i < 8; ++i) {
            add(i);
            add(base::f32_mantissa_mask - i);
        }
        for (const int width : mantissa_widths) {
            const std::uint32_t ulp = 1u << (23 - width);
            for (std::uint32_t half = 0; half < 2u << width; ++half) {
                const std::uint32_t at = half * (ulp / 2);
                add(at - 1);
                add(at);
                add(at + 1);
            }
        }
        // Below a format's smallest normal number the grid is coarser than its mantissa. Ties there
        // are powers of two and sums of two powers of two.
        for (int bit = 0; bit < 23; bit += 2) {
            add(1u << bit);
            add(0x400000u | 1u << bit);
        }
        for (int i = 0; i < 64; ++i) add(words.next());
    }
    all.insert(all.end(), nan_payloads.begin(), nan_payloads.end());
    return all;
}

std::vector<std::uint64_t> cell_hashes(const narrower& convert, std::uint32_t stride) {
    std::vector<std::uint64_t> hash(float_cells);
    base::parallel_for(float_cells, 0, nullptr, [&](std::uint64_t cell, int) {
        const auto first = static_cast<std::uint32_t>(cell) << 23;
        for (std::uint32_t m = 0; m < cell_floats; m += stride) {
            hash[cell] += hash_term(first | m, convert(first | m));
        }
    });
    return hash;
}

std::vector<stochastic_input> stochastic_inputs(const stochastic_narrowing& row, std::uint64_t seed,
                                                std::size_t count) {
    const value_range r = range_of(row.format);
    std::vector<stochastic_input> list;
    for (int value = 0; value < row.values; ++value) {
        for (const std::uint32_t x :
             {r.one, r.subnormal, r.vanishing, r.largest, r.beyond, 0xff800000u, 0x7fc00001u}) {
            append_sweep(list, row, value, x);
        }
    }
    word_stream words(
        {seed, base::tensor_id(fmt::format("{} {}", conversion_inputs_version, row.name))});
    for (std::size_t i = 0; i < count; ++i) {
        stochastic_input in{};
        for (int value = 0; value < row.values; ++value) {
            // Half of them within the formats' range, half over the whole range of float32.
            const std::uint32_t word = words.next();
            const auto field = static_cast<std::uint32_t>(words.between(100, 145));
            in.x[static_cast<std::size_t>(value)] =
                (i & 1u) != 0 ? word : (word & 0x807fffffu) | field << 23;
        }
        in.random = words.next();
        list.push_back(in);
    }
    return list;
}

}  // namespace mx::conformance::vectors
