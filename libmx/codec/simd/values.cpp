// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set; the first call selects one.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/codec/simd/values.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/codec/simd/values.hpp"

HWY_BEFORE_NAMESPACE();

namespace mx::codec::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using value_tag = hn::ScalableTag<float>;
using value_bits = hn::RebindToUnsigned<value_tag>;

void scale_codes(const ocp_params& p, const float* scales, std::size_t blocks, std::size_t size,
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
    for (; i < count; ++i) to[i] = base::bf16_bits_of(from[i]);
}

void widen(const std::uint16_t* from, float* to, std::size_t count) {
    const value_tag df;
    const value_bits du;
    const hn::Rebind<std::uint16_t, value_tag> stored;
    const std::size_t lanes = hn::Lanes(df);
    constexpr std::size_t ahead = 4096;  // what follows is likely to be next
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        if (i % 32 == 0) hwy::Prefetch(from + i + ahead);
        const auto word = hn::PromoteTo(du, hn::LoadU(stored, from + i));
        hn::StoreU(hn::BitCast(df, hn::ShiftLeft<16>(word)), df, to + i);
    }
    for (; i < count; ++i) to[i] = base::float_from_bf16(from[i]);
}

// The largest magnitude below `infinity` of words with a sign bit.
template <typename T>
HWY_INLINE T largest_below(T infinity, const T* words, std::size_t count) {
    const hn::ScalableTag<T> d;
    const std::size_t lanes = hn::Lanes(d);
    const auto magnitudes = hn::Set(d, std::numeric_limits<T>::max());
    const auto limit = hn::Set(d, infinity);
    auto a = hn::Zero(d), b = a, c = a, e = a;
    const auto take = [&](auto& most, auto bits) HWY_ATTR {
        const auto magnitude = hn::And(bits, magnitudes);
        most = hn::Max(most, hn::IfThenElseZero(hn::Lt(magnitude, limit), magnitude));
    };
    std::size_t i = 0;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
        take(a, hn::LoadU(d, words + i));
        take(b, hn::LoadU(d, words + i + lanes));
        take(c, hn::LoadU(d, words + i + 2 * lanes));
        take(e, hn::LoadU(d, words + i + 3 * lanes));
    }
    HWY_ALIGN T rest[4 * hn::MaxLanes(d)] = {};
    std::copy(words + i, words + count, rest);
    for (std::size_t r = 0; r < 4 * lanes; r += lanes) take(a, hn::Load(d, rest + r));
    return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(a, b), hn::Max(c, e))));
}

std::int16_t largest_of_16(std::int16_t infinity, const std::int16_t* words, std::size_t count) {
    return largest_below(infinity, words, count);
}
std::int32_t largest_of_32(std::int32_t infinity, const std::int32_t* words, std::size_t count) {
    return largest_below(infinity, words, count);
}

}  // namespace
}  // namespace mx::codec::simd::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mx::codec::simd {

HWY_EXPORT(scale_codes);
HWY_EXPORT(narrow);
HWY_EXPORT(widen);
HWY_EXPORT(largest_of_16);
HWY_EXPORT(largest_of_32);

void scaled_values(const ocp_params& p, const float* scales, std::size_t blocks, std::size_t size,
                   const std::uint8_t* codes, float* to) {
    HWY_DYNAMIC_DISPATCH(scale_codes)(p, scales, blocks, size, codes, to);
}

void to_bf16(const float* from, std::uint16_t* to, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(narrow)(from, to, count);
}

void from_bf16(const std::uint16_t* from, float* to, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(widen)(from, to, count);
}

std::uint32_t finite_amax(const stored_values& values, std::size_t count) {
    if (values.type == tensor::dtype::f32) {
        const auto* const words = reinterpret_cast<const std::int32_t*>(values.data);
        return static_cast<std::uint32_t>(
            HWY_DYNAMIC_DISPATCH(largest_of_32)(base::f32_infinity, words, count));
    }
    const bool is_bf16 = values.type == tensor::dtype::bf16;
    const auto* const words = reinterpret_cast<const std::int16_t*>(values.data);
    const auto most = static_cast<std::uint16_t>(
        HWY_DYNAMIC_DISPATCH(largest_of_16)(is_bf16 ? 0x7f80 : 0x7c00, words, count));
    return base::bits_of(is_bf16 ? base::float_from_bf16(most) : base::float_from_half(most));
}

}  // namespace mx::codec::simd
#endif
