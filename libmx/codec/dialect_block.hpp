// SPDX-License-Identifier: Apache-2.0
// The steps of quantizing a block under a dialect recipe, for host and device. The
// reference (at the end of this file) executes them element by element, a GPU with one or more
// lanes for a block (cuda/lane_body.hpp).
//
// There are two families of recipes, with the same steps: power_scales for dialects under scales
// that are powers of two, float_scales for all other scales (NVFP4, FP8 blocks).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "libmx/base/exact_sum.hpp"
#include "libmx/base/random.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/convert_element.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "libmx/codec/element_tally.hpp"
#include "libmx/codec/float_scale.hpp"
#include "libmx/codec/search_scale.hpp"
#include "libmx/scale/misrounded_log2.hpp"

namespace mx::codec {

/// Counts and extremes of some elements of a block. Magnitudes are float32 bits.
struct magnitude_survey {
    std::uint32_t nan = 0;
    std::uint32_t inf = 0;
    std::uint32_t largest = 0;  ///< above f32_infinity if there is a NaN
    std::uint32_t finite = 0;   ///< the largest of finite elements
    std::uint32_t least = ~0u;  ///< the smallest but zero, minus one

    MX_HD void add(float v) {
        const std::uint32_t magnitude = base::bits_of(v) & base::f32_magnitude_mask;
        nan += magnitude > base::f32_infinity ? 1u : 0u;
        inf += magnitude == base::f32_infinity ? 1u : 0u;
        largest = std::max(largest, magnitude);
        if (magnitude < base::f32_infinity) finite = std::max(finite, magnitude);
        least = std::min(least, magnitude - 1u);  // zero wraps to the largest number
    }
    /// Adds a survey of other elements.
    MX_HD void merge(const magnitude_survey& other) {
        nan += other.nan;
        inf += other.inf;
        largest = std::max(largest, other.largest);
        finite = std::max(finite, other.finite);
        least = std::min(least, other.least);
    }
    /// The largest magnitude of elements other than NaN.
    MX_HD std::uint32_t number() const { return inf != 0 ? base::f32_infinity : finite; }

    /// Writes what follows from the survey of a block of `elements` values.
    MX_HD void write(std::uint32_t elements, block::block_stats& out) const {
        out.count.elements = elements;
        out.count.nan = nan;
        out.count.inf = inf;
        out.x_max = largest;
        out.x_min = least + 1u;
        out.is.zero = largest == 0;
    }
};

/// A quantized element.
struct dialect_element {
    bool counts;              ///< included in rates and sums; else it is poisoned, NaN or Inf
    format::encoded exact;    ///< x / S rounded exactly, which decides overflow and clamping
    std::uint8_t code;        ///< 0 if the result has none
    std::uint32_t magnitude;  ///< of the code
    double value;             ///< d = S * q, exact
    float returned;           ///< d as the dialect returns it, if it is asked for
    bool overflows;           ///< it returns no finite number, though S and q are finite
};

/// The figures of some elements of a block that follow from their codes.
struct dialect_tally {
    element_tally elements;
    std::uint32_t poisoned = 0, dequant_overflow = 0, counted_max = 0;
    double max_error = 0;

    /// Adds an element and, unless `sums` is null, its terms to the sums (an exact_totals, or its
    /// counterpart on a device).
    template <typename Totals>
    MX_HD void add(const format::element_params& f, float x, const dialect_element& e, Totals* sums,
                   bool parts) {
        if (!e.counts) {
            poisoned += base::is_finite(x) ? 1u : 0u;
            return;
        }
        const block::error_part part =
            elements.add(f, x != 0, e.exact, e.magnitude, e.magnitude == 0);
        dequant_overflow += e.overflows ? 1u : 0u;
        counted_max = std::max(counted_max, base::bits_of(x) & base::f32_magnitude_mask);
        max_error = std::max(max_error, std::abs(e.value - static_cast<double>(x)));
        if (sums != nullptr) sums->add(x, {0, e.value}, part, parts);
    }
    MX_HD void finish(const format::element_params& f, block::block_stats& out) const {
        elements.finish(f, out);
        out.count.poisoned = poisoned;
        out.count.dequant_overflow = dequant_overflow;
        out.counted_max = counted_max;
        out.sum.max_error = max_error;
    }
};

namespace dialect_steps {

MX_HD inline std::uint32_t magnitude_of(float x) {
    return base::bits_of(x) & base::f32_magnitude_mask;
}

// An element in the dialect's dtype.
MX_HD inline float as_held(const block_params& p, float x) {
    return p.by->arithmetic.value == element_kind::bfloat16 ? base::rounded_to_bf16(x) : x;
}

MX_HD inline bool flushed(const block_params& p, std::uint32_t amax) {
    if (!p.flush_subnormals || amax == 0 || amax >= base::f32_infinity) return false;
    const int e = scale::binade_of(amax).exponent;
    return scale::floor_rounded_log2(scale::log2_in_float32, amax, e) <= -127;
}

MX_HD_CALL inline converted element_of(const conversion& c, float y, std::uint32_t draw) {
    return convert(c, base::bits_of(y), draw);
}

// Exponent of a power of two, subnormal ones included.
MX_HD inline int exponent_of(float power) {
    return scale::binade_of(base::bits_of(power)).exponent;
}

// The magnitude part of a code.
MX_HD inline std::uint32_t magnitude_code(const format::element_params& f, int code) {
    const auto bits = static_cast<std::uint32_t>(code);
    const std::uint32_t sign = 1u << (f.bits - 1);
    if ((bits & sign) == 0) return bits;
    return f.floating ? bits ^ sign : (~bits + 1u) & ((sign << 1) - 1u);
}

}  // namespace dialect_steps

/// The steps under a power-of-two scale as a dialect chooses it. Counts and sums follow the same
/// definitions as those of dialect ocp, with the scale S, the codes and the values q of the
/// dialect; y and r are exact. The scale may be NaN or Inf: the finite elements of the block are
/// then poisoned.
///
/// A dialect may leave a scale finite in a block with NaN and Inf elements; these are counted, but
/// excluded from rates and sums. A finite element that becomes NaN counts as poisoned.
struct power_scales {
    using scale = chosen_scale;
    static constexpr bool selects = false;  ///< whether four-over-six exists

    /// The scale by the recipe's rule; `first` is the index of the block's first element.
    MX_HD static scale first_scale(const block_params& p, const magnitude_survey& seen,
                                   std::uint64_t tensor_id, std::uint64_t first,
                                   block::block_stats& out) {
        using namespace dialect_steps;
        const bool nan = seen.nan != 0 && p.by->nan.value != nan_amax::ignored;
        // The maximum in the dialect's dtype: rounding is monotone.
        const float held = as_held(p, base::float_from_bits(seen.number()));
        out.amax = nan ? base::f32_magnitude_mask : magnitude_of(held);
        const bool random = p.step.drawn_bits != 0;
        // The draw of a block's scale has a separate stream.
        return dialect_scale(p, out.amax,
                             random ? base::random_u32({p.seed, ~tensor_id}, first) : 0u);
    }
    /// Whether a search decides.
    MX_HD static bool is_searched(const block_params& p, std::uint32_t amax, const scale& s) {
        return p.searches && amax != 0 && base::is_finite(s.value);
    }
    MX_HD static scale of_code(const block_params&, int code) {
        return dialect_steps::code_of(code);
    }
    MX_HD static void write(const scale& s, block::block_stats& out) {
        out.scale = s.value;
        out.scale_code = static_cast<std::uint8_t>(std::max(s.code, 0));
    }

    class encoder {
      public:
        /// `amax` is block_stats::amax; the last argument asks for dialect_element::returned.
        MX_HD encoder(const block_params& p, const scale& s, std::uint32_t amax, bool)
            : p_(p),
              scale_(s),
              poisoned_(!base::is_finite(s.value)),
              zeroed_(dialect_steps::flushed(p, amax)),
              narrow_(p.by->arithmetic.value == element_kind::bfloat16),
              divisor_(s.code == 0 ? p.dialect_rule.at_code_0 : s.value),
              ours_(p.by->id == dialect_id::ocp),
              by_ggml_(p.by->id == dialect_id::ggml),
              exponent_(poisoned_ ? 0 : dialect_steps::exponent_of(s.value)) {}

        /// `raised` is 1 if the exponent of this column is, else 0.
        MX_HD dialect_element encode(float x, std::uint32_t draw, int raised) const {
            using namespace dialect_steps;
            const conversion& c = p_.conversion;
            dialect_element out{};
            if (poisoned_) {
                const bool zero = p_.dialect_rule.zeros_beside_nan && base::is_finite(x);
                const float y = zero ? std::copysign(0.0f, x) : base::quiet_nan();
                const int code = element_of(c, y, 0).code;
                out.code = static_cast<std::uint8_t>(std::max(code, 0));
                out.returned = base::quiet_nan();
                return out;
            }
            const float doubled = raised != 0 ? 2.0f : 1.0f;
            const float scale = scale_.value * doubled;
            const float held = as_held(p_, x);
            float y = held / (divisor_ * doubled);
            // Some processors lose the sign of NaN in divisions, but some conversions depend on it.
            if (base::is_nan(held)) y = held;
            if (narrow_) y = base::rounded_to_bf16(y);
            if (scale_.nan_quotients) y = base::quiet_nan();
            out.exact = format::encode_magnitude(c.element, c.mode, base::bits_of(x),
                                                 exponent_ + raised, draw);
            converted q{};
            if (ours_) {  // its scale is NaN in blocks with NaN or Inf
                q.code = static_cast<int>(
                    format::with_sign(c.element, out.exact.magnitude, out.exact.negative));
                q.value = p_.value[q.code];
            } else {
                q = element_of(c, zeroed_ ? 0.0f : y, draw);
            }
            // ggml compares float32 products: one that overflows is never the nearest.
            if (by_ggml_ && magnitude_of(scale * q.value) == base::f32_infinity) {
                const std::uint32_t sign = base::bits_of(y) & base::f32_sign_mask;
                q = element_of(c, base::float_from_bits(base::bits_of(3.0f) | sign), draw);
            }
            out.code = static_cast<std::uint8_t>(std::max(q.code, 0));
            const float product = scale * q.value;
            const float returned = narrow_ ? base::rounded_to_bf16(product) : product;
            out.returned = base::is_nan(returned) ? base::quiet_nan() : returned;
            out.counts = base::is_finite(x) && base::is_finite(q.value) && base::is_finite(scale);
            out.magnitude = magnitude_code(c.element, q.code);
            out.value = static_cast<double>(scale) * static_cast<double>(q.value);
            out.overflows = !ours_ && !base::is_finite(returned);
            return out;
        }

      private:
        const block_params& p_;
        chosen_scale scale_;
        bool poisoned_, zeroed_, narrow_;
        float divisor_;
        bool ours_, by_ggml_;
        int exponent_;
    };
};

/// The steps under scales that are not powers of two. Uses exact arithmetic under dialect ocp, the
/// dialect's float32 operations otherwise. In both cases y = x / S, with S the exact product of
/// block and tensor scale, decides overflow and clamping, and d = S * q is exact: at most 40 bits.
/// A zero scale makes every element a zero of its sign; non-zero ones count as underflow.
struct float_scales {
    using scale = float_scale;
    static constexpr bool selects = true;

    MX_HD static scale first_scale(const block_params& p, const magnitude_survey& seen,
                                   std::uint64_t, std::uint64_t, block::block_stats& out) {
        out.amax = seen.nan == 0 || nan_decides(p) ? seen.largest : seen.number();
        return choose_scale(p, out.amax, p.largest);
    }
    MX_HD static bool is_searched(const block_params& p, std::uint32_t amax, const scale& s) {
        return p.searches && amax != 0 && p.tensor.decode > 0 && !base::is_nan(s.value);
    }
    MX_HD static scale of_code(const block_params& p, int code) {
        return float_scale_steps::coded(p, static_cast<std::uint8_t>(code));
    }
    MX_HD static void write(const scale& s, block::block_stats& out) {
        out.scale = s.value;
        out.scale_code = s.code;
    }

    class encoder {
      public:
        MX_HD encoder(const block_params& p, const scale& s, std::uint32_t, bool returns)
            : encoder_(p, s),
              decoder_(p, s.value),
              poisoned_code_(p.poisoned_code),
              poisoned_(base::is_nan(s.value)),
              foreign_(p.by->id != dialect_id::ocp),
              keeps_(p.by->inf_value.value == inf_element::keep),
              returns_(returns || foreign_) {}

        MX_HD dialect_element encode(float x, std::uint32_t draw, int) const {
            dialect_element out{};
            const bool finite = base::is_finite(x);
            if (poisoned_ || !finite) {
                out.code = poisoned_ ? poisoned_code_ : encoder_.special_code(x);
                out.returned = keeps_ && !finite ? x : decoder_.decode(out.code);
                return out;
            }
            const float_scale_encoder::element e = encoder_.encode(x, draw);
            out.counts = true;
            out.exact = e.exact;
            out.code = e.code;
            out.magnitude = e.magnitude;
            out.value = e.value;
            if (returns_) out.returned = decoder_.decode(e.code);
            out.overflows = foreign_ && !base::is_finite(out.returned);
            return out;
        }

      private:
        float_scale_encoder encoder_;
        float_scale_decoder decoder_;
        std::uint8_t poisoned_code_;
        bool poisoned_, foreign_, keeps_, returns_;
    };
};

// Four-over-six: which of two scales a block takes (mit-han-lab/fouroversix@dadfad6): the one under
// which its maximum becomes 6, or the one under which it becomes 4 if the error of the block is
// strictly smaller by the measure `p.select`. Errors d - x are exact, and so is the comparison of
// their sums; under dialect te both follow its float32 arithmetic.

namespace float_scale_steps {

/// The maximum under the second scale.
inline constexpr float four = 4.0f;
/// Rows of the largest tile for which dialect te has four-over-six.
inline constexpr int largest_te_tile = 16;

/// A figure of a block under either scale.
template <typename T>
struct under_both {
    T six, four;
};

/// Adds the error d - x of an element to that of others. d has at most 34 bits and is near x, so
/// the difference is exact (rounding to nearest; for elements far below the scale other roundings
/// round it once).
MX_HD inline double with_error(const block_params& p, double total, double error) {
    if (p.select == four_over_six::mse) return total + error * error;
    if (p.select == four_over_six::mae) return total + std::abs(error);
    return std::max(total, std::abs(error));
}
/// The error of the elements of both.
MX_HD inline double merged_error(const block_params& p, double a, double b) {
    return p.select == four_over_six::abs_max ? std::max(a, b) : a + b;
}

/// Whether only exact sums tell which error is smaller: a sum of 2^20 terms is within 2^-32 of its
/// exact value.
MX_HD inline bool are_close(const block_params& p, const under_both<double>& e) {
    if (p.select == four_over_six::abs_max || (e.four == 0 && e.six == 0)) return false;
    return !(std::abs(e.four - e.six) > 0x1p-30 * (e.four + e.six));
}

/// Adds an element's term of a sum of errors, times `sign`, exactly.
MX_HD_CALL inline void add_exactly(const block_params& p, double error, double sign,
                                   base::exact_sum& sum) {
    if (p.select == four_over_six::mae) {
        sum.add(sign * std::abs(error));
        return;
    }
    const double square = error * error;
    sum.add(sign * square);
    sum.add(sign * std::fma(error, error, -square));
}

/// The rows in which dialect te adds up a block of `size` elements with rows of `cols`: one, unless
/// it is a tile.
MX_HD inline std::uint32_t te_cols(std::uint32_t size, std::uint32_t cols) {
    return size > cols * static_cast<std::uint32_t>(largest_te_tile) ? size : cols;
}

/// The error of an element as the reference quantizer of dialect te computes it, in float32; errors
/// are added up in the order of the elements of a row, and over the rows of a tile in a tree.
MX_HD inline float te_error(const block_params& p, const float_scale_encoder& encoder,
                            const float_scale& scale, float x) {
    const float product = p.value[encoder.special_code(x)] * scale.value;
    const float d = p.candidates == candidate_kind::fp16
                        ? product - x * p.tensor.stored
                        : product * p.tensor.amax / p.outer.range - x;
    return p.select == four_over_six::mse ? d * d : std::abs(d);
}

}  // namespace float_scale_steps

// The reference.

/// The draw of the element at a position of a block; 0 unless elements are rounded stochastically.
inline std::uint32_t draw_of(const block_params& p, const block_place& place,
                             std::size_t position) {
    if (p.mode.how != format::rounding::stochastic) return 0;
    return base::random_u32({p.seed, place.tensor_id}, place.index(static_cast<int>(position)));
}

/// Four-over-six of one block.
inline float_scale select_scale(const block_params& p, std::span<const float> x,
                                const block_place& place, const float_scale& six,
                                const float_scale& four) {
    using namespace float_scale_steps;
    const float_scale_encoder by_six(p, six), by_four(p, four);
    if (p.by->two_level.value == two_level_kind::te) {
        const auto cols =
            te_cols(static_cast<std::uint32_t>(x.size()), static_cast<std::uint32_t>(place.cols));
        under_both<float> rows[largest_te_tile] = {};
        for (std::size_t i = 0; i < x.size(); ++i) {
            rows[i / cols].six += te_error(p, by_six, six, x[i]);
            rows[i / cols].four += te_error(p, by_four, four, x[i]);
        }
        for (int distance = largest_te_tile / 2; distance > 0; distance /= 2) {
            for (int row = 0; row < distance; ++row) {
                rows[row].six += rows[row + distance].six;
                rows[row].four += rows[row + distance].four;
            }
        }
        return rows[0].four < rows[0].six ? four : six;
    }
    const auto for_each_error = [&](auto&& visit) {
        for (std::size_t i = 0; i < x.size(); ++i) {
            const std::uint32_t draw = draw_of(p, place, i);
            const auto v = static_cast<double>(x[i]);
            visit(by_six.encode(x[i], draw).value - v, by_four.encode(x[i], draw).value - v);
        }
    };
    under_both<double> error{};
    for_each_error([&](double of_six, double of_four) {
        error.six = with_error(p, error.six, of_six);
        error.four = with_error(p, error.four, of_four);
    });
    if (!are_close(p, error)) return error.four < error.six ? four : six;
    base::exact_sum difference;
    for_each_error([&](double of_six, double of_four) {
        add_exactly(p, of_four, 1.0, difference);
        add_exactly(p, of_six, -1.0, difference);
    });
    return difference.sign() < 0 ? four : six;
}

/// quantize_block under a family's scales; `codes` and `values` may be empty.
template <typename Family>
block::block_stats quantize_under(const block_params& p, std::span<const float> x,
                                  const block_place& place, std::span<std::uint8_t> codes,
                                  std::span<float> values, block::exact_totals* sums, bool parts) {
    block::block_stats out{};
    magnitude_survey seen;
    for (const float v : x) seen.add(v);
    seen.write(static_cast<std::uint32_t>(x.size()), out);
    auto scale = Family::first_scale(p, seen, place.tensor_id, place.first, out);
    if constexpr (Family::selects) {
        if (p.select != four_over_six::none && !base::is_nan(scale.value)) {
            scale = select_scale(p, x, place, scale,
                                 choose_scale(p, out.amax, float_scale_steps::four));
        }
    }
    if (Family::is_searched(p, out.amax, scale)) {
        scale = Family::of_code(p, searched_code(p, x, scale.code));
    }
    Family::write(scale, out);
    const typename Family::encoder encoder(p, scale, out.amax, !values.empty());
    dialect_tally tally;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const int column = static_cast<int>(i) % place.cols;
        const int raised = place.bump != nullptr && place.bump[column] != 0 ? 1 : 0;
        const dialect_element e = encoder.encode(x[i], draw_of(p, place, i), raised);
        if (!codes.empty()) codes[i] = e.code;
        if (!values.empty()) values[i] = e.returned;
        tally.add(p.element, x[i], e, sums, parts);
    }
    tally.finish(p.element, out);
    return out;
}

/// quantize_block under dialect recipes; `codes` and `values` may be empty.
inline block::block_stats quantize_dialect(const block_params& p, std::span<const float> x,
                                           const block_place& place, std::span<std::uint8_t> codes,
                                           std::span<float> values, block::exact_totals* sums,
                                           bool parts) {
    return p.scale_format->power_of_two()
               ? quantize_under<power_scales>(p, x, place, codes, values, sums, parts)
               : quantize_under<float_scales>(p, x, place, codes, values, sums, parts);
}

}  // namespace mx::codec
