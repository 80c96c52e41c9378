// SPDX-License-Identifier: Apache-2.0
// The facts about the scale of a dialect block (dialect_block.hpp: a scale that is not a power of
// two, or one of a dialect) that vector kernels need. Scales come from the reference, once per
// code, and are cached.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "libmx/codec/float_scale.hpp"

namespace mx::codec::simd {

/// How y, the number that is rounded to a code, is computed from x.
enum class quotient_kind : std::uint8_t {
    exact,     ///< x / S in exact arithmetic
    product,   ///< float32 x * factor
    division,  ///< float32 x / factor
};

/// Whether vector kernels support a dialect recipe.
bool takes_dialect(const block_params& p);

/// For a recipe that takes_dialect accepts.
quotient_kind quotient_of(const block_params& p);

struct block_scaling {
    double scale;    ///< S, exact, of the block and the tensor; 0: every element becomes a zero
    double inverse;  ///< a little more than 1 / S (exact_quotients), 0 for a zero S
    float factor;    ///< for the dialect's float32 arithmetic, or in exact arithmetic the inverse
    /// The smallest |x| beyond the largest value, and the smallest one that rounds beyond it, in
    /// exact arithmetic. Inf: none.
    float overflow, clamp;
    float largest;  ///< the largest |x| that kernels accept; < 0: all is left to the reference
    float own;      ///< the block's scale without that of the tensor, if it is no power of two
    std::uint8_t code;
};

/// For a block that is left to the reference: kernels then produce zeros only.
inline constexpr block_scaling left_to_reference{
    0,  0, 1, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity(),
    -1, 0, 0};

/// The scalings of a recipe in a tensor, by the block's largest magnitude.
class scaling_table {
  public:
    /// `target`: see choose_scale. Caches scalings by maximum; where the outer scale is that of an
    /// area, which few blocks share, by code.
    scaling_table(const block_params& p, float target);

    bool is_for(const block_params& p, float target) const;
    /// Takes the outer scale of another area; false if `p` differs in more than that.
    bool enter_area(const block_params& p, float target);
    /// The scaling of a scale code, if scales have codes.
    const block_scaling& of_code(int code) {
        if (by_code_.empty()) fill_codes();
        return by_code_[static_cast<std::size_t>(code)];
    }

    /// All codes of finite scales in float32, if scales have codes.
    struct float32_scales {
        std::vector<float> scale, inverse;  ///< S and 1 / S by code
        int least = 1, most = 0;            ///< codes where both are far from float32's limits
    };
    const float32_scales& in_float();

    /// The scaling for a maximum, given as bits, for as long as the table or until it enters
    /// another area; `lone` receives it if the table does not keep it.
    const block_scaling* lasting(std::uint32_t amax_bits, std::deque<block_scaling>& lone) {
        if (const block_scaling* kept = found(amax_bits)) return kept;
        const block_scaling& s = without_cell(amax_bits);
        return &s == &last_ ? &lone.emplace_back(s) : &s;
    }

    /// The same, valid until the next call.
    const block_scaling& of(std::uint32_t amax_bits) {
        const block_scaling* const kept = found(amax_bits);
        return kept != nullptr ? *kept : without_cell(amax_bits);
    }

  private:
    // Everything that determines a scale.
    struct source {
        const dialect* by;
        const format::scale_format* scale_format;
        scale::rule_step step;
        dialect_step dialect_rule;
        bool searches, has_tensor_scale, float_power;
        four_over_six select;
        format::element_params element;
        format::rounding_mode mode;
        bool flush_subnormals;
        float largest, stored, decode, amax, target;
        bool outer_areas;
        friend bool operator==(const source&, const source&) = default;
    };
    // Maxima with the same exponent and top four mantissa bits. The code of a scale changes at most
    // once among them: E4M3 has a code for every eighth of a binade.
    struct cell {
        const block_scaling* either[2] = {};  // in found_; null: not yet computed
        std::uint32_t from = 0;               // maxima from here on use the second
    };
    static constexpr int cell_bits = 19;
    static constexpr std::uint32_t least_normal = 1u << 23;

    // The scaling for a maximum that has a cell, else null: among subnormals a cell may contain
    // more than one change of code.
    const block_scaling* found(std::uint32_t amax_bits) {
        if (amax_bits - least_normal >= base::f32_infinity - least_normal || !coded_)
            return nullptr;
        cell& c = cells_[amax_bits >> cell_bits];
        if (c.either[0] == nullptr) fill(c, amax_bits >> cell_bits << cell_bits);
        // Without a branch that nothing predicts.
        return c.either[amax_bits >= c.from ? 1 : 0];
    }
    const block_scaling& without_cell(std::uint32_t amax_bits);

    static source source_of(const block_params& p, float target);
    block_scaling asked(std::uint32_t amax_bits) const;
    const block_scaling& by_area(std::uint32_t amax_bits);
    block_scaling of_power(std::uint32_t amax_bits) const;
    block_scaling of_number(std::uint32_t amax_bits) const;
    block_scaling of_power(const chosen_scale& s) const;
    block_scaling of_number(const float_scale& s) const;
    void set_scale(double scale, block_scaling& to) const;
    void bound(block_scaling& s) const;
    void fill(cell& c, std::uint32_t first);
    void fill_codes();

    block_params p_;
    source source_;
    quotient_kind kind_;
    bool coded_;
    // Elements beyond the largest value, and elements from (or above) the midpoint to the next one.
    double largest_value_, clamp_value_;
    bool clamps_above_;
    block_scaling zero_, last_{};
    std::vector<cell> cells_;
    std::vector<block_scaling> found_;  // never moves
    std::vector<block_scaling> by_code_;
    struct area_entry {
        std::uint64_t area = 0;  // for which the scaling was found
        block_scaling scaling{};
    };
    std::uint64_t area_ = 1;
    std::vector<area_entry> in_area_;  // by code; empty unless outer scales are of areas
    float32_scales in_float_;
};

/// The table of a recipe; each thread caches the last few.
scaling_table& table_of(const block_params& p, float target);

}  // namespace mx::codec::simd
