// SPDX-License-Identifier: Apache-2.0
// What vector kernels need to know of the scale of a general block (general_block.hpp): one whose
// scale is no power of two, or one of a dialect. Scales are those of the reference, asked for once
// per code and kept.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "libmx/codec/fractional_element.hpp"

namespace mx::codec::simd {

/// How y, the number that is rounded to a code, follows from x.
enum class quotient_kind : std::uint8_t {
    exact,     ///< x / S in exact arithmetic
    product,   ///< float32 x * factor
    division,  ///< float32 x / factor
};

/// Whether vector kernels do blocks of a recipe that is not plain.
bool takes_general(const block_params& p);

/// Of a recipe that takes_general approves.
quotient_kind quotient_of(const block_params& p);

struct block_scaling {
    double scale;    ///< S, exact: of the block and of the tensor; 0: every element becomes a zero
    double inverse;  ///< a little more than 1 / S (exact_quotients), 0 for a zero S
    float factor;    ///< of the dialect's float32 arithmetic
    /// The smallest |x| that lies beyond the largest value, and the smallest one that is rounded
    /// beyond it, in exact arithmetic. Inf: none.
    float overflow, clamp;
    float largest;  ///< the largest |x| that the kernels take; below 0: the reference does all
    std::uint8_t code;
};

/// Of a block that the reference does: a kernel makes zeros of zeros.
inline constexpr block_scaling left_to_reference{
    0, 0, 1, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity(), -1, 0};

/// The scalings of a recipe in a tensor, by the largest magnitude of the block.
class scaling_table {
  public:
    /// `target`: see choose_scale. Keeps what it was asked for unless the outer scale is that of an
    /// area, which few blocks share.
    scaling_table(const block_params& p, float target);

    bool is_for(const block_params& p, float target) const;
    /// Of a code of the scale, where scales have codes.
    const block_scaling& of_code(int code);

    /// All codes in float32, where scales have codes.
    struct float_scales {
        std::vector<float> scale, inverse;  ///< S and 1 / S by code
        int least = 1, most = 0;            ///< codes for which both are far from float32's ends
    };
    const float_scales& in_float();

    /// Of magnitude bits; valid until the next call.
    const block_scaling& of(std::uint32_t amax_bits) {
        if (amax_bits == 0) return zero_;
        if (amax_bits >= base::f32_infinity) return left_to_reference;
        // Among subnormals a code may change more often.
        if (!coded_ || amax_bits < 1u << 23) return last_ = asked(amax_bits);
        cell& c = cells_[amax_bits >> cell_bits];
        if (c.below < 0) fill(c, amax_bits >> cell_bits << cell_bits);
        return found_[static_cast<std::size_t>(c.below + (amax_bits >= c.from ? 1 : 0))];
    }

  private:
    // What a scale is made from.
    struct source {
        const dialect* by;
        const format::scale_format* scale_format;
        scale::rule_id rule;
        scale::rule_input facts;
        format::element_params element;
        format::rounding_mode mode;
        int exponent_bits;
        bool flush_subnormals;
        float largest, stored, decode, amax, target;
        bool outer_areas;
        friend bool operator==(const source&, const source&) = default;
    };
    // Maxima that share exponent and four bits of mantissa. The codes of a scale change at most
    // once among them: E4M3 has a code for every eighth of a binade.
    struct cell {
        std::int32_t below = -1;  // in found_, followed by that above; < 0: not asked for yet
        std::uint32_t from = 0;   // maxima from here on have that above
    };
    static constexpr int cell_bits = 19;

    static source source_of(const block_params& p, float target);
    block_scaling asked(std::uint32_t amax_bits) const;
    block_scaling of_power(std::uint32_t amax_bits) const;
    block_scaling of_number(std::uint32_t amax_bits) const;
    block_scaling of_power(const chosen_scale& s) const;
    block_scaling of_number(const fractional_scale& s) const;
    void set_scale(double scale, block_scaling& to) const;
    void bound(block_scaling& s) const;
    void fill(cell& c, std::uint32_t first);

    block_params p_;
    source source_;
    quotient_kind kind_;
    bool coded_;
    // Elements beyond the largest value, and from (or above) the midpoint to the next one.
    double largest_value_, clamp_value_;
    bool clamps_above_;
    block_scaling zero_, last_{};
    std::vector<cell> cells_;
    std::vector<block_scaling> found_, by_code_;
    float_scales in_float_;
};

/// The table of a recipe: of this thread, which keeps the last few.
scaling_table& table_of(const block_params& p, float target);

}  // namespace mx::codec::simd
