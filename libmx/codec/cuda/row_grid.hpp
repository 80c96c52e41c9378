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
MX_HD inline bool takes_rows(const plain_params& p, std::uint64_t block_rows,
                             std::uint64_t block_cols) {
    const format::element_params& f = p.element;
    return block_rows == 1 && block_cols <= 32 && f.floating && f.has_sign && f.mantissa_bits > 0 &&
           p.mode.how == format::rounding::rtne && !p.has_offset && scale::is_step(p.rule);
}

/// The same bf16 in both halves of a word.
MX_HD constexpr std::uint32_t twice(std::uint32_t half) { return half | half << 16; }

struct row_grid {
    std::uint32_t to_magic;     ///< added to a float32 exponent field, in place; see rounded()
    std::uint32_t least_magic;  ///< of the lowest binade
    float largest;
    int emax;    ///< exponent of the largest number
    float near;  ///< non-zero |y| are at least this, 2^(emax - 19),
    float far;   ///< and below this, 2^(emax + 2), so that row_sums (row_values.hpp) is exact
    /// Lower limits of magnitudes, as float32 bits, that become more than zero, a normal number,
    /// and the largest number; that overflow; that round beyond the largest number.
    std::uint32_t kept, normal, top, overflow, clamp;
    std::uint32_t rule_step;
    int rule_base;

    // Magnitude code of a normal number: bits >> code_shift, less code_base; others are shifted
    // into the lowest binade, `normals` codes higher.
    int code_shift, sign_shift;
    std::uint32_t code_base, normals;
    float least_normal;

    // The same for two bf16 in a word: they have room for a mantissa of three bits.
    std::uint32_t to_magics, least_magics, largests;
};

MX_HD inline row_grid row_grid_of(const plain_params& p) {
    const format::element_params& f = p.element;
    const int m = f.mantissa_bits;
    const int emax = f.emin + static_cast<int>(f.max_positive >> m) - 1;
    const auto largest = static_cast<float>((f.max_positive & ((1u << m) - 1u)) | 1u << m) *
                         base::exact_pow2f(emax - m);
    const float low_half = base::exact_pow2f(f.quantum - 1);  // half a quantum at either end
    const float top_half = base::exact_pow2f(emax - m - 1);
    const bool even = (f.max_positive & 1u) == 0;  // ties at the largest code round to it
    row_grid g{};
    g.to_magic = (static_cast<std::uint32_t>(23 - m) << 23) + 0x00400000u;
    g.least_magic = (static_cast<std::uint32_t>(f.emin + 127) << 23) + g.to_magic;
    g.largest = largest;
    g.emax = emax;
    g.near = base::exact_pow2f(emax - 19);
    g.far = base::exact_pow2f(emax + 2);
    g.kept = base::bits_of(low_half) + 1u;
    g.normal = base::bits_of(base::exact_pow2f(f.emin) - low_half);
    g.top = base::bits_of(largest - top_half) + (even ? 0u : 1u);
    g.overflow = base::bits_of(largest) + 1u;
    g.clamp = base::bits_of(largest + top_half) + (even ? 1u : 0u);
    g.to_magics = twice((static_cast<std::uint32_t>(7 - m) << 7) + 0x40u);
    g.least_magics = twice(static_cast<std::uint32_t>(f.emin + 127) << 7) + g.to_magics;
    g.largests = twice(base::bits_of(largest) >> 16);
    g.code_shift = 23 - m;
    g.sign_shift = f.bits - 1;
    g.code_base = static_cast<std::uint32_t>(f.emin + 126) << m;
    g.normals = 1u << m;
    g.least_normal = base::exact_pow2f(f.emin);
    const scale::rule_step step = scale::step_of(p.rule, p.facts);
    g.rule_step = scale::one_binade - step.from;
    g.rule_base = step.base;
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

/// y on the grid, within its range; not for NaN. Adding and subtracting 1.5 * 2^23 quanta rounds to
/// nearest even, for either sign: the sum has no bits below the quantum. A zero is +0.
MX_HD inline float rounded(const row_grid& g, float y) {
    const std::uint32_t own = (base::bits_of(y) & base::f32_infinity) + g.to_magic;
    const float magic = base::float_from_bits(std::max(own, g.least_magic));
    const float q = (y + magic) - magic;
    return smaller_of(larger_of(q, -g.largest), g.largest);
}

/// The code of a number of the grid, with the sign of `y`.
MX_HD inline std::uint32_t code_of(const row_grid& g, float q, float y) {
    const float magnitude = base::float_from_bits(base::bits_of(q) & base::f32_magnitude_mask);
    const bool low = magnitude < g.least_normal;
    const std::uint32_t bits = base::bits_of(low ? magnitude + g.least_normal : magnitude);
    const std::uint32_t sign = base::bits_of(y) >> 31 << g.sign_shift;
    return ((bits >> g.code_shift) - g.code_base - (low ? g.normals : 0u)) | sign;
}

/// Two rounded elements.
struct value_pair {
    float first, second;
};

/// A converter rounds y = x / S to the element format, two at a time, under a recipe that
/// takes_rows() accepts. This one uses arithmetic and runs on every GPU and CPU.
class grid_converter {
  public:
    explicit MX_HD grid_converter(const plain_params&) {}
    MX_HD value_pair operator()(const row_grid& g, float first, float second) const {
        return {rounded(g, first), rounded(g, second)};
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

inline int body_of(const plain_params& p, std::uint64_t block_rows, std::uint64_t block_cols) {
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
