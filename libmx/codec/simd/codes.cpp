// SPDX-License-Identifier: Apache-2.0
// Elements to codes or numbers of the grid, without counts, for conversions. Compiled once per
// instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/codec/simd/codes.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/codec/simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET
#include "libmx/codec/simd/counting.inc"
#include "libmx/codec/simd/widening.inc"

namespace mx::codec::simd::HWY_NAMESPACE {
namespace {

using byte_tag = hn::Rebind<std::uint8_t, bits_tag>;

template <bool fixed, rounding_kind kind>
class code_maker {
  public:
    explicit HWY_INLINE code_maker(const element_grid& g)
        : grid_(g),
          inverse_quantum_(hn::Set(float_tag(), g.inverse_quantum)),
          code_mask_(hn::Set(bits_tag(), (1u << g.bits) - 1u)),
          sign_code_(hn::Set(bits_tag(), 1u << (g.bits - 1))),
          sign_shift_(32 - g.bits),
          shift_(g.code_shift),
          top_(hn::Zero(bits_tag())) {
        if constexpr (!fixed) top_ = code_of(grid_.max_positive);
    }

    // The magnitude of y on the grid, at most the largest.
    HWY_INLINE floats magnitude(floats y, words draw) const {
        return hn::Min(grid_.round(y, hn::Abs(y), draw), grid_.limit(y));
    }

    // The codes of y, with its sign.
    HWY_INLINE words codes(floats y, words draw) const {
        if constexpr (fixed) {
            const floats q = hn::CopySignToAbs(magnitude(y, draw), y);
            return integer_code(q);
        } else {
            return signed_as(y, magnitude_codes(y, draw));
        }
    }

    // Codes without the sign; floating formats.
    HWY_INLINE words magnitude_codes(floats y, words draw) const {
        if constexpr (kind == rounding_kind::nearest) {
            return hn::Min(code_of(hn::Abs(y)), top_);
        } else {
            return hn::Min(code_of(grid_.round(y, hn::Abs(y), draw)), top_);
        }
    }
    // Codes of magnitudes that are on the grid.
    HWY_INLINE words codes_on_grid(floats magnitude) const {
        return hn::Min(code_of(magnitude), top_);
    }

    HWY_INLINE words signed_as(floats y, words code) const {
        return hn::Or(
            code, hn::And(hn::ShiftRightSame(hn::BitCast(bits_tag(), y), sign_shift_), sign_code_));
    }

    // Clamped to the largest number of its sign, which changes no saturating result.
    HWY_INLINE floats clamped(floats y) const { return clamped_as(y, hn::Abs(y)); }
    // A magnitude, at most the largest number of y's sign, with that sign.
    HWY_INLINE floats clamped_as(floats y, floats magnitude) const {
        return hn::CopySignToAbs(hn::Min(magnitude, grid_.limit(y)), y);
    }
    // Whether all lanes are at most the largest number of their sign; false for a NaN.
    HWY_INLINE bool in_range(floats y) const {
        return hn::AllTrue(float_tag(), hn::Le(hn::Abs(y), grid_.limit(y)));
    }

    HWY_INLINE words integer_code(floats q) const {
        const ints steps = hn::ConvertTo(int_tag(), hn::Mul(q, inverse_quantum_));
        return hn::And(hn::BitCast(bits_tag(), steps), code_mask_);
    }

    static HWY_INLINE void store(words codes, std::uint8_t* to) {
        hn::StoreU(hn::TruncateTo(byte_tag(), codes), byte_tag(), to);
    }

  private:
    // At or above 2^23 quanta the last bits of the sum are the number of quanta. The code counts
    // quanta; from the second binade on, it adds as many for each binade below.
    HWY_INLINE words code_of(floats a) const {
        const bits_tag du;
        const words exponent =
            hn::Max(hn::And(hn::BitCast(du, a), hn::Set(du, base::f32_infinity)), grid_.least);
        const words c = hn::Add(exponent, grid_.step);
        const words quanta = hn::Sub(hn::BitCast(du, hn::Add(a, hn::BitCast(float_tag(), c))), c);
        return hn::Add(quanta, hn::ShiftRightSame(hn::Sub(exponent, grid_.least), shift_));
    }

    grid_vectors<fixed, kind> grid_;
    floats inverse_quantum_;
    words code_mask_, sign_code_;
    int sign_shift_, shift_;
    words top_;
};

template <bool fixed, rounding_kind kind>
HWY_ATTR void write_ocp(const element_grid& g, const block_run& run, const float* offset,
                        const block_scales& scales, std::uint8_t* codes) {
    const float_tag df;
    const code_maker<fixed, kind> maker(g);
    for (std::size_t b = 0; b < run.blocks; ++b) {
        if (scales.slow.data()[b] != 0) continue;
        const floats reciprocal = hn::Set(df, scales.reciprocal.data()[b]);
        const floats centre = hn::Set(df, offset != nullptr ? offset[b] : 0.0f);
        const std::size_t end = (b + 1) * run.stride;
        for (std::size_t i = b * run.stride; i < end; i += float_lanes) {
            words draw = hn::Zero(bits_tag());
            if constexpr (kind == rounding_kind::stochastic) {
                draw = hn::LoadU(bits_tag(), run.draws + i);
            }
            const floats z = hn::Sub(hn::LoadU(df, run.x + i), centre);
            maker.store(maker.codes(hn::Mul(z, reciprocal), draw), codes + i);
        }
    }
}

template <bool fixed, quotient_kind kind, rounding_kind how>
HWY_ATTR void write_dialect(const element_grid& g, const block_run& run,
                            const dialect_scales& of_dialect, const block_scales& scales,
                            std::uint8_t* codes) {
    const float_tag df;
    const bits_tag du;
    const code_maker<fixed, rounding_kind::nearest> maker(g);
    sure_quotients<fixed, how> quotients(g);
    // The sign of a zero: where the code has one, or where y has one.
    const words never = hn::Zero(du);
    const words always = hn::Set(du, base::f32_sign_mask);
    const words plus_of_code = g.sign_of_zero == zero_sign::plus ? always : never;
    const words plus_of_input = g.sign_of_zero == zero_sign::input_plus ? always : never;
    const words minus_of_input = g.sign_of_zero == zero_sign::input_minus ? always : never;
    const bool kept = g.sign_of_zero == zero_sign::kept;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        if (scales.slow.data()[b] != 0) continue;
        const float by = of_dialect.factor.data()[b];
        quotients.set_scale(of_dialect.scale.data()[b], of_dialect.inverse.data()[b], by);
        const floats factor = hn::Set(df, by);
        const std::size_t end = (b + 1) * run.stride;
        for (std::size_t i = b * run.stride; i < end; i += float_lanes) {
            const floats x = hn::LoadU(df, run.x + i);
            floats y = x;
            words code;
            if constexpr (kind == quotient_kind::exact) {
                words draw = hn::Zero(du);
                if constexpr (how == rounding_kind::stochastic) draw = hn::LoadU(du, run.draws + i);
                const floats magnitude = quotients.round(x, draw);
                if constexpr (fixed) {
                    maker.store(maker.integer_code(maker.clamped_as(x, magnitude)), codes + i);
                    continue;
                }
                code = maker.codes_on_grid(magnitude);
            } else {
                y = float_quotient<kind>(x, factor);
                code = maker.magnitude_codes(y, hn::Zero(du));
            }
            if (!kept) {
                const words zero_code = hn::VecFromMask(du, hn::Eq(code, hn::Zero(du)));
                const words zero_input =
                    hn::VecFromMask(du, hn::RebindMask(du, hn::Eq(y, hn::Zero(df))));
                const words clear =
                    hn::Or(hn::And(zero_code, plus_of_code), hn::And(zero_input, plus_of_input));
                const words set = hn::And(zero_input, minus_of_input);
                y = hn::BitCast(df, hn::Or(hn::AndNot(clear, hn::BitCast(du, y)), set));
            }
            maker.store(maker.signed_as(y, code), codes + i);
        }
    }
}

// A run ends at a vector that contains NaN, Inf or, unless results saturate, a number beyond the
// largest.
template <class From, bool fixed, rounding_kind kind>
HWY_ATTR std::size_t cast_run(const element_grid& g, bool saturate, const std::byte* from,
                              std::size_t count, std::uint8_t* codes, float* values) {
    const auto* const x = reinterpret_cast<const typename From::stored*>(from);
    const code_maker<fixed, kind> maker(g);
    const floats inf = hn::Set(float_tag(), base::float_from_bits(base::f32_infinity));
    std::size_t i = 0;
    for (; i + float_lanes <= count; i += float_lanes) {
        floats y = From::widen(x + i);
        if (HWY_UNLIKELY(!maker.in_range(y))) {
            if (!saturate || !hn::AllTrue(float_tag(), hn::Lt(hn::Abs(y), inf))) break;
            y = maker.clamped(y);
        }
        if (codes != nullptr) maker.store(maker.codes(y, hn::Zero(bits_tag())), codes + i);
        if (values != nullptr) {
            const floats q = maker.magnitude(y, hn::Zero(bits_tag()));
            hn::StoreU(hn::CopySignToAbs(q, y), float_tag(), values + i);
        }
    }
    return i;
}

template <class From>
std::size_t cast_from(const element_grid& g, bool saturate, const std::byte* from,
                      std::size_t count, std::uint8_t* codes, float* values) {
    std::size_t done = 0;
    const auto run = [&]<bool fixed>() {
        const auto f = g.rounding == rounding_kind::nearest
                           ? cast_run<From, fixed, rounding_kind::nearest>
                           : cast_run<From, fixed, rounding_kind::threshold>;
        done = f(g, saturate, from, count, codes, values);
    };
    if (g.fixed) {
        run.template operator()<true>();
    } else {
        run.template operator()<false>();
    }
    return done;
}

}  // namespace

void codes(const element_grid& g, const block_run& run, const float* offset,
           const block_scales& scales, std::uint8_t* to) {
    by_grid(g, [&]<bool fixed, rounding_kind kind>() {
        write_ocp<fixed, kind>(g, run, offset, scales, to);
    });
}

void dialect_codes(const element_grid& g, quotient_kind kind, const block_run& run,
                   const dialect_scales& of_dialect, const block_scales& scales, std::uint8_t* to) {
    by_quotient(g, kind, [&]<bool fixed, quotient_kind of, rounding_kind how>() {
        write_dialect<fixed, of, how>(g, run, of_dialect, scales, to);
    });
}

std::size_t cast(const element_grid& g, bool saturate, const stored_values& from, std::size_t count,
                 std::uint8_t* to, float* values) {
    if (from.type == tensor::dtype::bf16) {
        return cast_from<from_bf16>(g, saturate, from.data, count, to, values);
    }
    if (from.type == tensor::dtype::f16) {
        return cast_from<from_f16>(g, saturate, from.data, count, to, values);
    }
    return cast_from<from_f32>(g, saturate, from.data, count, to, values);
}

}  // namespace mx::codec::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
