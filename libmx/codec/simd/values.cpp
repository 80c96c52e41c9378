// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set; the first call selects one.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/codec/simd/values.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "libmx/base/bits.hpp"
#include "libmx/codec/simd/values.hpp"

HWY_BEFORE_NAMESPACE();

namespace mx::codec::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using value_tag = hn::ScalableTag<float>;
using value_bits = hn::RebindToUnsigned<value_tag>;

void scale_codes(const plain_params& p, const float* scales, std::size_t blocks, std::size_t size,
                 const std::uint8_t* codes, float* to) {
    const value_tag df;
    const value_bits du;
    const hn::Rebind<std::uint8_t, value_tag> stored;
    const std::size_t lanes = hn::Lanes(df);
    const int mantissa = p.element.mantissa_bits, top = p.element.bits - 1;
    const auto magnitude_mask = hn::Set(du, (1u << top) - 1u);
    const auto hidden = hn::Set(du, 1u << mantissa);
    const auto exponent = [&](int e) {
        return hn::Set(du, static_cast<std::uint32_t>(127 + e) << 23);
    };
    const auto normal = exponent(p.element.emin - 1), least = exponent(p.element.emin);
    const std::size_t in_vectors =
        p.element.floating && p.element.has_sign ? size / lanes * lanes : 0;
    for (std::size_t b = 0; b < blocks; ++b, codes += size, to += size) {
        const float scale = scales[b];
        const auto factor = hn::Set(df, scale);
        for (std::size_t i = 0; i < in_vectors; i += lanes) {
            const auto code = hn::PromoteTo(du, hn::LoadU(stored, codes + i));
            const auto magnitude = hn::And(code, magnitude_mask);
            const auto field = hn::ShiftLeftSame(magnitude, 23 - mantissa);
            // Subnormals: the fraction with an implicit bit, which is subtracted again.
            const auto small =
                hn::Sub(hn::BitCast(df, hn::Add(field, least)), hn::BitCast(df, least));
            const auto value = hn::IfThenElse(hn::RebindMask(df, hn::Lt(magnitude, hidden)), small,
                                              hn::BitCast(df, hn::Add(field, normal)));
            const auto sign = hn::ShiftLeftSame(hn::Xor(code, magnitude), 31 - top);
            hn::StoreU(hn::Mul(factor, hn::Or(value, hn::BitCast(df, sign))), df, to + i);
        }
        for (std::size_t i = in_vectors; i < size; ++i) to[i] = scale * p.value[codes[i]];
    }
}

void narrow(const float* from, std::uint16_t* to, std::size_t count) {
    const value_tag df;
    const value_bits du;
    const hn::Rebind<std::uint16_t, value_tag> stored;
    const std::size_t lanes = hn::Lanes(df);
    const auto one = hn::Set(du, 1u), half = hn::Set(du, 0x7fffu);
    const auto quiet = hn::Set(du, 0x7fc0u), sign = hn::Set(du, 0x8000u);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        const auto x = hn::LoadU(df, from + i);
        const auto bits = hn::BitCast(du, x);
        const auto upper = hn::ShiftRight<16>(bits);
        const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(half, hn::And(upper, one))));
        const auto nan = hn::Or(hn::And(upper, sign), quiet);
        hn::StoreU(
            hn::TruncateTo(stored, hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), nan, rounded)),
            stored, to + i);
    }
    for (; i < count; ++i) {
        const std::uint32_t u = base::bits_of(from[i]), upper = u >> 16;
        const bool is_nan = (u & base::f32_magnitude_mask) > base::f32_infinity;
        to[i] = static_cast<std::uint16_t>(is_nan ? (upper & 0x8000u) | 0x7fc0u
                                                  : (u + 0x7fffu + (upper & 1u)) >> 16);
    }
}

}  // namespace
}  // namespace mx::codec::simd::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mx::codec::simd {

HWY_EXPORT(scale_codes);
HWY_EXPORT(narrow);

void scaled_values(const plain_params& p, const float* scales, std::size_t blocks, std::size_t size,
                   const std::uint8_t* codes, float* to) {
    HWY_DYNAMIC_DISPATCH(scale_codes)(p, scales, blocks, size, codes, to);
}

void to_bf16(const float* from, std::uint16_t* to, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(narrow)(from, to, count);
}

}  // namespace mx::codec::simd
#endif
