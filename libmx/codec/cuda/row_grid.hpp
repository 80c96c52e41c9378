// SPDX-License-Identifier: Apache-2.0
// The common recipe in float32 arithmetic: a floating element format with a mantissa, rounded to
// nearest even, blocks of up to 32 neighbours, no offset. Everything but the value of an element
// depends on the range that contains its magnitude: rounding is monotone, so every count tests
// whether |y| reaches some number of at most five significant bits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "libmx/base/bits.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/scale/rule_step.hpp"

namespace mx::codec::cuda {

/// Whether row_grid and row_body.hpp support a recipe with these blocks.
MX_HD inline bool takes_rows(const ocp_params& p, std::uint64_t block_rows,
                             std::uint64_t block_cols) {
    const format::element_params& f = p.element;
    return block_rows == 1 && block_cols <= 32 && f.floating && f.has_sign && f.mantissa_bits > 0 &&
           p.mode.how == format::rounding::rtne && !p.has_offset && p.step.drawn_bits == 0;
}

/// The same bf16 in both halves of a word.
MX_HD constexpr std::uint32_t twice(std::uint32_t half) { return half | half << 16; }

/// Lower limits of magnitudes, as float32 bits, that are not zero; that become more than zero, a
/// normal number, and the largest number; that overflow; that round beyond the largest number.
struct row_bounds {
    std::uint32_t nonzero, kept, normal, top, overflow, clamp;
};

/// The numbers of a recipe with its element format. Magnitudes are those of y = x / S in units of
/// 2^(emax - place_bits), where 2^emax is the binade of the format's largest number: every bf16
/// that row_sums (row_values.hpp) takes is an integer then.
struct row_grid {
    static constexpr int place_bits = 26;

    std::uint32_t to_magic;     ///< added to a float32 exponent field, in place; see rounded()
    std::uint32_t least_magic;  ///< of the lowest binade
    float largest;
    int unit;                 ///< exponent of the unit, emax - place_bits
    float in_ones, per_unit;  ///< 2^unit and its reciprocal
    float near;               ///< non-zero |y| are at least this, 2^(emax - 19),
    float far;                ///< and below this, 2^(emax + 2), so that row_sums is exact
    row_bounds bounds;
    std::uint32_t rule_step;
    int rule_base;
    std::uint32_t nan_from;
    /// Scales whose reciprocals, in units, are normal float32, as codes: not those at an end of
    /// their range. And the exponent field of the reciprocal of scale 0.
    int least_scale, most_scale, reciprocal;

    // Codes: see code_of().
    int code_shift, sign_shift;
    std::uint32_t largest_code;

    // The same for two bf16 in a word: they have room for a mantissa of three bits.
    std::uint32_t to_magics, least_magics, largests, largest_codes;
};

MX_HD inline row_grid row_grid_of(const ocp_params& p) {
    const format::element_params& f = p.element;
    const int m = f.mantissa_bits;
    const int emax = f.emin + static_cast<int>(f.max_positive >> m) - 1;
    const int unit = emax - row_grid::place_bits;
    const auto units = [unit](int exponent) { return base::exact_pow2f(exponent - unit); };
    const float largest =
        static_cast<float>((f.max_positive & ((1u << m) - 1u)) | 1u << m) * units(emax - m);
    const float low_half = units(f.quantum - 1);  // half a quantum at either end
    const float top_half = units(emax - m - 1);
    const bool even = (f.max_positive & 1u) == 0;  // ties at the largest code round to it
    row_grid g{};
    g.to_magic = (static_cast<std::uint32_t>(23 - m) << 23) + 0x00400000u;
    g.least_magic = base::bits_of(units(f.emin)) + g.to_magic;
    g.largest = largest;
    g.unit = unit;
    g.in_ones = base::exact_pow2f(unit);
    g.per_unit = base::exact_pow2f(-unit);
    g.near = units(emax - 19);
    g.far = units(emax + 2);
    g.bounds.nonzero = base::bits_of(g.near);
    g.bounds.kept = base::bits_of(low_half) + 1u;
    g.bounds.normal = base::bits_of(units(f.emin) - low_half);
    g.bounds.top = base::bits_of(largest - top_half) + (even ? 0u : 1u);
    g.bounds.overflow = base::bits_of(largest) + 1u;
    g.bounds.clamp = base::bits_of(largest + top_half) + (even ? 1u : 0u);
    g.rule_step = scale::one_binade - p.step.from;
    g.rule_base = p.step.emax;
    g.nan_from = p.step.nan_from;
    g.reciprocal = 2 * 127 - unit;
    g.least_scale = std::max(1, g.reciprocal - 254);
    g.most_scale = std::min(253, g.reciprocal - 1);
    g.code_shift = 23 - m;
    g.sign_shift = f.bits - 1;
    g.largest_code = f.max_positive;
    g.to_magics = twice((static_cast<std::uint32_t>(7 - m) << 7) + 0x40u);
    g.least_magics = twice(base::bits_of(units(f.emin)) >> 16) + g.to_magics;
    g.largests = twice(base::bits_of(largest) >> 16);
    g.largest_codes = twice(f.max_positive);
    return g;
}

MX_HD inline float smaller_of(float a, float b) {
#if defined(__CUDA_ARCH__)
    return fminf(a, b);
#else
    return b < a ? b : a;
#endif
}
MX_HD inline float larger_of(float a, float b) {
#if defined(__CUDA_ARCH__)
    return fmaxf(a, b);
#else
    return a < b ? b : a;
#endif
}

/// 1.5 * 2^23 quanta of the binade of y. A sum with it has no bits below the quantum.
MX_HD inline std::uint32_t magic_of(const row_grid& g, float y) {
    return std::max((base::bits_of(y) & base::f32_infinity) + g.to_magic, g.least_magic);
}

/// y on the grid, within its range; not for NaN. Adding and subtracting the magic number rounds to
/// nearest even, for either sign. A zero is +0.
MX_HD inline float rounded(const row_grid& g, float y) {
    const float magic = base::float_from_bits(magic_of(g, y));
    const float q = (y + magic) - magic;
    return smaller_of(larger_of(q, -g.largest), g.largest);
}

/// The code of y after rounding. Quanta beyond the magic number are the last bits of the sum;
/// binades above the lowest one that has normal numbers add as many codes each as there are
/// mantissas.
MX_HD inline std::uint32_t code_of(const row_grid& g, float y) {
    const std::uint32_t magic = magic_of(g, y);
    const float magnitude = base::float_from_bits(base::bits_of(y) & base::f32_magnitude_mask);
    const std::uint32_t sum = base::bits_of(magnitude + base::float_from_bits(magic));
    const std::uint32_t code = (sum - magic) + ((magic - g.least_magic) >> g.code_shift);
    return std::min(code, g.largest_code) | base::bits_of(y) >> 31 << g.sign_shift;
}

/// Two rounded elements.
struct value_pair {
    float first, second;
};

/// A converter rounds y, in units, to the element format, two at a time, under a recipe that
/// takes_rows() accepts. This one uses arithmetic and runs on every GPU and CPU.
class grid_converter {
  public:
    explicit MX_HD grid_converter(const ocp_params&) {}
    MX_HD value_pair values(const row_grid& g, float first, float second) const {
        return {rounded(g, first), rounded(g, second)};
    }
    /// The codes, the first in bits 0 to 7, the second in bits 8 to 15.
    MX_HD std::uint32_t codes(const row_grid& g, float first, float second) const {
        return code_of(g, first) | code_of(g, second) << 8;
    }
};

// The bodies: one for segments; one for rows of each element format that some device converts by an
// instruction; and a further one for each of these formats that also writes codes.

inline constexpr int segment_body = 0;
inline constexpr int first_row_body = 1;

/// Body first_row_body + i is that of format i; takes_rows() accepts no others.
inline constexpr std::array<std::string_view, 5> row_formats{"e4m3", "e5m2", "e2m1", "e2m3",
                                                             "e3m2"};

/// The body of an element format in the list.
constexpr int row_body_of(std::string_view format) {
    int body = first_row_body;
    for (const std::string_view f : row_formats) {
        if (f == format) break;
        ++body;
    }
    return body;
}

/// Offset from a body to that of the same format that also writes codes.
inline constexpr int coded_rows = static_cast<int>(row_formats.size());
inline constexpr std::uint32_t row_bodies = ((1u << coded_rows) - 1u) << first_row_body;

/// A set of bodies, as bits, with those of the same formats that write codes.
constexpr std::uint32_t with_codes(std::uint32_t bodies) { return bodies | bodies << coded_rows; }

inline int body_of(const ocp_params& p, std::uint64_t block_rows, std::uint64_t block_cols) {
    if (!takes_rows(p, block_rows, block_cols)) return segment_body;
    for (std::size_t i = 0; i < row_formats.size(); ++i) {
        const format::element_format& f = *format::find_element_format(row_formats[i]);
        const bool same = f.bits() == p.element.bits &&
                          f.mantissa_bits == p.element.mantissa_bits &&
                          f.emin() == p.element.emin && f.max_code() == p.element.max_positive;
        if (same) return first_row_body + static_cast<int>(i);
    }
    return segment_body;
}

}  // namespace mx::codec::cuda
