// SPDX-License-Identifier: Apache-2.0
// Groups under Sylvester's matrix: butterflies at the distances 1, 2, 4, ... in this order.
// Compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/transform/simd/turns.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "libmx/transform/simd/turns.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET

namespace mx::transform::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
inline constexpr std::size_t largest_group = 1024;

// The lanes at `distance` from each, by its lowest bit that is not zero.
template <std::size_t distance, class D, class V = hn::Vec<D>>
HWY_INLINE V partners(D d, V v) {
    constexpr std::size_t bytes = distance * sizeof(hn::TFromD<D>);
    if constexpr (bytes == 4) {
        return hn::Shuffle2301(v);
    } else if constexpr (bytes == 8 && distance == 2) {
        return hn::Shuffle1032(v);
    } else if constexpr (bytes == 8) {
        return hn::Shuffle01(v);
    } else if constexpr (2 * distance == hn::MaxLanes(D())) {
        return hn::ConcatLowerUpper(d, v, v);
    } else {
        return hn::SwapAdjacentBlocks(v);
    }
}

// Butterflies between the lanes of a vector, at the distances from `distance` to n / 2.
template <std::size_t distance, class D, class V = hn::Vec<D>>
HWY_INLINE V within(D d, V v, std::size_t n) {
    if constexpr (distance < hn::MaxLanes(D())) {
        if (distance >= n) return v;
        const hn::RebindToUnsigned<D> du;
        using bits = hn::TFromD<decltype(du)>;
        const auto upper = hn::TestBit(hn::Iota(du, 0), hn::Set(du, static_cast<bits>(distance)));
        const V sum = hn::Add(partners<distance>(d, v),
                              hn::IfThenElse(hn::RebindMask(d, upper), hn::Neg(v), v));
        return within<2 * distance>(d, sum, n);
    } else {
        return v;
    }
}

// Butterflies between the vectors of `count` numbers.
template <class D, typename T>
HWY_INLINE void between(D d, T* HWY_RESTRICT room, std::size_t count) {
    constexpr std::size_t lanes = hn::MaxLanes(D());
    for (std::size_t distance = lanes; distance < count; distance *= 2) {
        for (std::size_t i = 0; i < count; i += 2 * distance) {
            for (std::size_t j = i; j < i + distance; j += lanes) {
                const auto a = hn::Load(d, room + j), b = hn::Load(d, room + j + distance);
                hn::Store(hn::Add(a, b), d, room + j);
                hn::Store(hn::Sub(a, b), d, room + j + distance);
            }
        }
    }
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V one_nan(D d, V v) {
    return hn::IfThenElse(hn::IsNaN(v), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), v);
}

// Float32 numbers to those of the butterflies, and from them.
class forward {
  public:
    using tag = hn::ScalableTag<float>;
    using floats = hn::Vec<tag>;
    using numbers = floats;

    explicit forward(std::size_t n) : factor_(factor_of(n)) {}
    HWY_INLINE static numbers load(const float* x, floats sign) {
        return hn::Mul(sign, hn::LoadU(tag(), x));
    }
    HWY_INLINE void store(numbers y, floats, float* to) const {
        const tag d;
        hn::StoreU(one_nan(d, hn::Mul(y, hn::Set(d, factor_))), d, to);
    }

  private:
    float factor_;
};

class backward {
  public:
    using tag = hn::ScalableTag<double>;
    using float_tag = hn::Rebind<float, tag>;
    using floats = hn::Vec<float_tag>;
    using numbers = hn::Vec<tag>;

    explicit backward(std::size_t n)
        : divisor_(static_cast<double>(n) * static_cast<double>(factor_of(n))) {}
    HWY_INLINE static numbers load(const float* x, floats) {
        return hn::PromoteTo(tag(), hn::LoadU(float_tag(), x));
    }
    // A zero becomes +0, whatever its sign before the rotation.
    HWY_INLINE void store(numbers y, floats sign, float* to) const {
        const float_tag d;
        const floats x = hn::DemoteTo(d, hn::Div(y, hn::Set(tag(), divisor_)));
        hn::StoreU(one_nan(d, hn::Add(hn::Mul(sign, x), hn::Zero(d))), d, to);
    }

  private:
    double divisor_;
};

template <class Way>
using number_of = hn::TFromD<typename Way::tag>;
template <class Way>
using float_tag_of = hn::Rebind<float, typename Way::tag>;
template <class Way>
inline constexpr std::size_t lanes_of = hn::MaxLanes(typename Way::tag());

// Groups in `count` neighbours: one, or as many as are in a vector.
template <class Way>
HWY_INLINE void turn_neighbours(const Way& way, std::size_t n, const float* signs,
                                std::size_t count, float* x) {
    constexpr std::size_t lanes = lanes_of<Way>;
    const typename Way::tag d;
    const float_tag_of<Way> df;
    HWY_ALIGN number_of<Way> room[largest_group];
    for (std::size_t i = 0; i < count; i += lanes) {
        const auto v = way.load(x + i, hn::LoadU(df, signs + i));
        hn::Store(within<1>(d, v, n), d, room + i);
    }
    between(d, room, count);
    for (std::size_t i = 0; i < count; i += lanes) {
        way.store(hn::Load(d, room + i), hn::LoadU(df, signs + i), x + i);
    }
}

// The same in one or two vectors, without memory.
template <std::size_t vectors, class Way>
HWY_INLINE void turn_vectors(const Way& way, std::size_t n, const float* signs, float* x) {
    constexpr std::size_t lanes = lanes_of<Way>;
    const typename Way::tag d;
    const auto sign = hn::LoadU(float_tag_of<Way>(), signs);
    auto a = within<1>(d, way.load(x, sign), n);
    if constexpr (vectors == 2) {
        const auto second_sign = hn::LoadU(float_tag_of<Way>(), signs + lanes);
        const auto b = within<1>(d, way.load(x + lanes, second_sign), n);
        way.store(hn::Sub(a, b), second_sign, x + lanes);
        a = hn::Add(a, b);
    }
    way.store(a, sign, x);
}

template <class Way>
void turn_rows(const groups& g) {
    constexpr std::size_t lanes = lanes_of<Way>;
    const Way way(g.size);
    const std::size_t count = std::max(g.size, lanes);
    HWY_ALIGN float signs[largest_group];
    for (std::size_t i = 0; i < count; ++i) signs[i] = g.signs[i % g.size];
    for (std::size_t r = 0; r < g.x.rows; ++r) {
        float* const row = g.x.data + r * g.x.stride;
        const std::size_t whole = g.x.cols / count * count;
        std::size_t at = 0;
        if (count == lanes) {
            for (; at < whole; at += lanes) turn_vectors<1>(way, g.size, signs, row + at);
        } else if (count == 2 * lanes) {
            for (; at < whole; at += 2 * lanes) turn_vectors<2>(way, g.size, signs, row + at);
        }
        for (; at < whole; at += count) turn_neighbours(way, g.size, signs, count, row + at);
        if (at == g.x.cols) continue;
        float rest[lanes] = {};
        std::copy(row + at, row + g.x.cols, rest);
        turn_neighbours(way, g.size, signs, lanes, rest);
        std::copy(rest, rest + (g.x.cols - at), row + at);
    }
}

// As many columns as a vector has lanes, or `width` of them.
template <class Way>
HWY_INLINE void turn_strip(const Way& way, const groups& g, float* x, std::size_t width) {
    constexpr std::size_t lanes = lanes_of<Way>;
    const typename Way::tag d;
    const float_tag_of<Way> df;
    HWY_ALIGN number_of<Way> room[largest_group * lanes];
    float edge[lanes] = {};
    for (std::size_t i = 0; i < g.size; ++i) {
        const float* from = x + i * g.x.stride;
        if (width < lanes) from = (std::copy(from, from + width, edge), edge);
        hn::Store(way.load(from, hn::Set(df, g.signs[i])), d, room + i * lanes);
    }
    between(d, room, g.size * lanes);
    for (std::size_t i = 0; i < g.size; ++i) {
        float* const to = x + i * g.x.stride;
        way.store(hn::Load(d, room + i * lanes), hn::Set(df, g.signs[i]),
                  width < lanes ? edge : to);
        if (width < lanes) std::copy(edge, edge + width, to);
    }
}

template <class Way>
void turn_columns(const groups& g) {
    constexpr std::size_t lanes = lanes_of<Way>;
    const Way way(g.size);
    for (std::size_t at = 0; at < g.x.rows; at += g.size) {
        float* const first = g.x.data + at * g.x.stride;
        for (std::size_t c = 0; c < g.x.cols; c += lanes) {
            turn_strip(way, g, first + c, std::min(lanes, g.x.cols - c));
        }
    }
}

template <class Way>
void turn(const groups& g) {
    if (g.along == run::row) return turn_rows<Way>(g);
    turn_columns<Way>(g);
}

}  // namespace

turns both() { return {turn<forward>, turn<backward>}; }

}  // namespace mx::transform::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mx::transform::simd {

turns turns_for(base::simd::target t) {
    using base::simd::target;
    switch (t) {
#if HWY_TARGETS & HWY_SSE4
        case target::sse4:
            return N_SSE4::both();
#endif
#if HWY_TARGETS & HWY_AVX2
        case target::avx2:
            return N_AVX2::both();
#endif
#if HWY_TARGETS & HWY_AVX3
        case target::avx512:
            return N_AVX3::both();
#endif
#if HWY_TARGETS & HWY_NEON
        case target::neon:
            return N_NEON::both();
#endif
        default:
            return {};
    }
}

}  // namespace mx::transform::simd
#endif
