// SPDX-License-Identifier: Apache-2.0
// Dot products of matrix units, stated in rationals: without integer algorithms and without the
// emulator's tables.
#pragma once

#include <cstdint>
#include <vector>

#include "libmx/oracle/number.hpp"
#include "libmx/oracle/value_list.hpp"

namespace mx::oracle {

/// The meaning of the largest exponent field, or of the code of -0, in an operand format.
enum class code_specials : std::uint8_t { none, fn, ieee, fnuz };

/// An operand format by its independent facts.
struct operand_facts {
    int exponent_bits;
    int mantissa_bits;
    int bias;
    code_specials specials;
    int dropped_bits = 0;  ///< low bits of a code that do not count
};
inline constexpr operand_facts f32_facts{8, 23, 127, code_specials::ieee};
inline constexpr operand_facts f16_facts{5, 10, 15, code_specials::ieee};

/// A number that is about to be added: its value, and the exponent it is aligned by.
struct addend {
    number_class what = number_class::finite;
    bool negative = false;
    rational value = 0;
    int exponent = 0;
};

/// The meaning of `code`. Subnormals (and zero) have the exponent of the smallest normal number.
addend read_code(const operand_facts& f, std::uint32_t code);

/// The meaning of scale codes: 2^(code - 127), 255 is NaN; and E4M3 of the low seven bits.
addend read_e8m0(unsigned code);
addend read_ue4m3(unsigned code);

/// a * b: exponents add, Inf * 0 is NaN.
addend product(const addend& a, const addend& b);

/// The format of a sum: a binary format, the number of mantissa bits kept, and the rounding.
struct sum_target {
    operand_facts format;
    int kept_bits;
    bool nearest;  ///< to nearest even; otherwise toward zero, with Inf beyond the largest exponent
};

/// `value` in the target, as bits; values that round to zero keep their sign, zero is +0.
std::uint32_t round_sum(const sum_target& to, const rational& value);

/// The bits of NaN as every unit writes it.
std::uint32_t written_nan(const sum_target& to);

/// NaN or Inf if the terms require it: any NaN, or Inf of both signs, or Inf. Otherwise false.
bool special_sum(const sum_target& to, const std::vector<addend>& terms, std::uint32_t& bits);

/// A fused step: terms cut to multiples of 2^(E - F), E the largest exponent among `floor` and
/// those of terms that count (`live`; a term that is not live adds nothing), their sum rounded.
struct fused_terms {
    std::vector<addend> terms;
    std::vector<bool> live;
};
std::uint32_t fused_sum(const sum_target& to, int fraction_bits, int floor, const fused_terms& t);

/// CDNA3: products[0] (with even and odd k separate: products[0] and [1]) are each truncated F bits
/// below their largest exponent; sums are rounded down to F bits below the larger one, their total
/// to F2 + 1 bits and c to F bits below the larger of their exponents (at least -126); the result
/// is rounded down to F2 bits below its own leading bit and then to the target. `far_c_drops`: c is
/// left out if its exponent is more than F + 1 below.
std::uint32_t two_sided_sum(const sum_target& to, int fraction_bits, int wide_fraction_bits,
                            const std::vector<std::vector<addend>>& products, const addend& c,
                            bool far_c_drops);

/// The exact sum of terms, rounded once to the nearest float32; a zero has the sign of IEEE
/// addition (-0 only if all terms are -0).
std::uint32_t exact_sum_f32(const std::vector<addend>& terms);

}  // namespace mx::oracle
