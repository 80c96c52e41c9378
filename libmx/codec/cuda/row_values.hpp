// SPDX-License-Identifier: Apache-2.0
// The up to 32 values of a block in one lane, padded with zeros: first as stored, then divided by
// the scale. bf16 stay two to a word; others are float32.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "libmx/base/bits.hpp"
#include "libmx/codec/cuda/lane_totals.hpp"
#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/codec/cuda/segment_body.hpp"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#endif

// Values stay in registers only if their indices are constants.
#if defined(__CUDA_ARCH__)
#define MX_UNROLL _Pragma("unroll")
#else
#define MX_UNROLL
#endif

namespace mx::codec::cuda {

// Arithmetic on two bf16 in a word, each result rounded to nearest even: instructions on a device,
// float32 on the host. On the host a sum rounds twice, which makes no difference if one of its
// terms has at least half the exponent range of a bf16 between its last place and the other's
// first, or if the exact sum fits 24 bits. NaN and subnormals do not occur.

/// The value in the lower half, and the one in the upper.
MX_HD inline float low_of(std::uint32_t pair) { return base::float_from_bits(pair << 16); }
MX_HD inline float high_of(std::uint32_t pair) { return base::float_from_bits(pair & 0xffff0000u); }

#if defined(__CUDA_ARCH__)

__device__ inline __nv_bfloat162 as_pair(std::uint32_t word) {
    __nv_bfloat162 pair;
    std::memcpy(&pair, &word, sizeof pair);
    return pair;
}
__device__ inline std::uint32_t as_word(__nv_bfloat162 pair) {
    std::uint32_t word;
    std::memcpy(&word, &pair, sizeof word);
    return word;
}

__device__ inline std::uint32_t pair_product(std::uint32_t a, std::uint32_t b) {
    return as_word(__hmul2(as_pair(a), as_pair(b)));
}
__device__ inline std::uint32_t pair_sum(std::uint32_t a, std::uint32_t b) {
    return as_word(__hadd2(as_pair(a), as_pair(b)));
}
__device__ inline std::uint32_t pair_difference(std::uint32_t a, std::uint32_t b) {
    return as_word(__hsub2(as_pair(a), as_pair(b)));
}
__device__ inline std::uint32_t pair_between(std::uint32_t a, std::uint32_t least,
                                             std::uint32_t most) {
    return as_word(__hmin2(__hmax2(as_pair(a), as_pair(least)), as_pair(most)));
}

// Larger or smaller halves, as unsigned numbers; Hopper has an instruction for each.
__device__ inline std::uint32_t larger_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return __vimax3_u16x2(a, b, c);
}
__device__ inline std::uint32_t smaller_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return __vimin3_u16x2(a, b, c);
}
__device__ inline std::uint32_t larger_of_sum(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return __viaddmax_u16x2(a, b, c);
}

#else

template <typename Operation>
MX_HD inline std::uint32_t by_halves(std::uint32_t a, std::uint32_t b, Operation operation) {
    const auto rounded = [](float x) {
        const std::uint32_t bits = base::bits_of(x);
        return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    };
    return rounded(operation(low_of(a), low_of(b))) | rounded(operation(high_of(a), high_of(b)))
                                                          << 16;
}

MX_HD inline std::uint32_t pair_product(std::uint32_t a, std::uint32_t b) {
    return by_halves(a, b, [](float x, float y) { return x * y; });
}
MX_HD inline std::uint32_t pair_sum(std::uint32_t a, std::uint32_t b) {
    return by_halves(a, b, [](float x, float y) { return x + y; });
}
MX_HD inline std::uint32_t pair_difference(std::uint32_t a, std::uint32_t b) {
    return by_halves(a, b, [](float x, float y) { return x - y; });
}
MX_HD inline std::uint32_t pair_between(std::uint32_t a, std::uint32_t least, std::uint32_t most) {
    const std::uint32_t up = by_halves(a, least, [](float x, float y) { return x < y ? y : x; });
    return by_halves(up, most, [](float x, float y) { return x > y ? y : x; });
}
MX_HD inline std::uint32_t larger_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const std::uint32_t low = std::max(std::max(a & 0xffffu, b & 0xffffu), c & 0xffffu);
    return low | std::max(std::max(a >> 16, b >> 16), c >> 16) << 16;
}
MX_HD inline std::uint32_t smaller_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const std::uint32_t low = std::min(std::min(a & 0xffffu, b & 0xffffu), c & 0xffffu);
    return low | std::min(std::min(a >> 16, b >> 16), c >> 16) << 16;
}
MX_HD inline std::uint32_t larger_of_sum(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const std::uint32_t low = std::max((a + b) & 0xffffu, c & 0xffffu);
    return low | std::max(((a >> 16) + (b >> 16)) & 0xffffu, c >> 16) << 16;
}

#endif

/// The largest number of values in a block.
inline constexpr int row_size = 32;

/// Magnitudes, float32 bits.
struct magnitude_range {
    std::uint32_t most, least;
};

namespace detail {

struct sixteen_bytes {
    std::uint32_t word[4];
};

/// Sixteen bytes at an address aligned to 16.
MX_HD inline sixteen_bytes load_sixteen(const std::byte* from) {
#if defined(__CUDA_ARCH__)
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(from));
    return {{v.x, v.y, v.z, v.w}};
#else
    sixteen_bytes v;
    std::memcpy(&v, from, sizeof v);
    return v;
#endif
}

MX_HD inline void store_sixteen(std::uint8_t* to, const sixteen_bytes& v) {
#if defined(__CUDA_ARCH__)
    *reinterpret_cast<uint4*>(to) = make_uint4(v.word[0], v.word[1], v.word[2], v.word[3]);
#else
    std::memcpy(to, &v, sizeof v);
#endif
}

}  // namespace detail

class bf16_block {
  public:
    MX_HD void load(const device_values& values, std::uint64_t at, std::uint32_t size) {
        if (size == 32 && at % 8 == 0) {
            MX_UNROLL
            for (int i = 0; i < 16; i += 4) {
                const detail::sixteen_bytes v = detail::load_sixteen(
                    values.data + (at + static_cast<std::uint64_t>(2 * i)) * 2);
                for (int k = 0; k < 4; ++k) word_[i + k] = v.word[k];
            }
            return;
        }
        MX_UNROLL
        for (std::uint32_t i = 0; i < 32; i += 2) {
            const std::uint32_t low = i < size ? half(values, at + i) : 0u;
            const std::uint32_t high = i + 1 < size ? half(values, at + i + 1) : 0u;
            word_[i / 2] = low | high << 16;
        }
    }

    MX_HD magnitude_range range() const {
        std::uint32_t most = 0, least = 0x7fff7fffu;
        MX_UNROLL
        for (int i = 0; i < 16; i += 2) {
            const std::uint32_t a = word_[i] & 0x7fff7fffu;
            const std::uint32_t b = word_[i + 1] & 0x7fff7fffu;
            most = larger_halves(most, a, b);
            least = smaller_halves(least, a, b);
        }
        return {std::max(most << 16, most & 0xffff0000u),
                std::min(least << 16, least & 0xffff0000u)};
    }

    /// The smallest non-zero magnitude, 0 if there is none.
    MX_HD std::uint32_t least_nonzero() const {
        std::uint32_t least = 0xffffu;
        MX_UNROLL
        for (int i = 0; i < 16; ++i) {
            // Zeros wrap to the largest number.
            least = std::min(least, ((word_[i] & 0x7fffu) - 1u) & 0xffffu);
            least = std::min(least, ((word_[i] >> 16 & 0x7fffu) - 1u) & 0xffffu);
        }
        return ((least + 1u) & 0xffffu) << 16;
    }

    /// Divides by a power of two, given its reciprocal; results are normal or zero.
    MX_HD void scale(float reciprocal) {
        const std::uint32_t factor = twice(base::bits_of(reciprocal) >> 16);
        MX_UNROLL
        for (int i = 0; i < 16; ++i) word_[i] = pair_product(word_[i], factor);
    }

    /// Value `i`, which must be a constant.
    MX_HD float operator[](int i) const {
        return i % 2 == 0 ? low_of(word_[i / 2]) : high_of(word_[i / 2]);
    }

    /// The values rounded as in rounded(), two at a time; `beyond`: some may leave the range.
    MX_HD bf16_block on_grid(const row_grid& g, bool beyond) const {
        bf16_block q;
        MX_UNROLL
        for (int i = 0; i < 16; ++i) {
            const std::uint32_t magic =
                larger_of_sum(word_[i] & 0x7f807f80u, g.to_magics, g.least_magics);
            q.word_[i] = pair_difference(pair_sum(word_[i], magic), magic);
        }
        if (!beyond) return q;
        MX_UNROLL
        for (int i = 0; i < 16; ++i) {
            q.word_[i] = pair_between(q.word_[i], g.largests | 0x80008000u, g.largests);
        }
        return q;
    }

    /// Counts the magnitudes >= each of `from`, float32 bits of non-zero numbers of at most 8 bits,
    /// or one more than such bits.
    template <int n>
    MX_HD void reaching(const std::uint32_t (&from)[n], std::uint32_t (&count)[n]) const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        // Two comparisons and two additions of ones per instruction.
        __nv_bfloat162 ones[n];
        for (int k = 0; k < n; ++k) ones[k] = as_pair(0);
        MX_UNROLL
        for (int i = 0; i < 16; ++i) {
            const __nv_bfloat162 magnitude = as_pair(word_[i] & 0x7fff7fffu);
            for (int k = 0; k < n; ++k) {
                const __nv_bfloat162 bound = as_pair(twice((from[k] + 0xffffu) >> 16));
                ones[k] = __hadd2(ones[k], __hge2(magnitude, bound));
            }
        }
        for (int k = 0; k < n; ++k) {
            count[k] = static_cast<std::uint32_t>(__low2float(ones[k]) + __high2float(ones[k]));
        }
#else
        for (int k = 0; k < n; ++k) {
            const std::uint32_t bound = twice((from[k] + 0xffffu) >> 16);
            std::uint32_t reached = 0;
            MX_UNROLL
            for (int i = 0; i < 16; ++i) {
                // Neither half borrows, and its top bit stays set unless the magnitude is smaller.
                const std::uint32_t d = (word_[i] | 0x80008000u) - bound;
                reached = reached >> 1 | (d & 0x80008000u);
            }
#if defined(__CUDA_ARCH__)
            count[k] = static_cast<std::uint32_t>(__popc(reached));
#else
            count[k] = static_cast<std::uint32_t>(__builtin_popcount(reached));
#endif
        }
#endif
    }

  private:
    static MX_HD std::uint32_t half(const device_values& values, std::uint64_t at) {
        std::uint16_t h;
        std::memcpy(&h, __builtin_assume_aligned(values.data + at * sizeof h, sizeof h), sizeof h);
        return h;
    }
    std::uint32_t word_[16];
};

class float_block {
  public:
    MX_HD void load(const device_values& values, std::uint64_t at, std::uint32_t size) {
        if (values.type == tensor::dtype::f32 && size == 32 && at % 4 == 0) {
            MX_UNROLL
            for (int i = 0; i < 32; i += 4) {
                const detail::sixteen_bytes v =
                    detail::load_sixteen(values.data + (at + static_cast<std::uint64_t>(i)) * 4);
                for (int k = 0; k < 4; ++k) value_[i + k] = base::float_from_bits(v.word[k]);
            }
            return;
        }
        MX_UNROLL
        for (std::uint32_t i = 0; i < 32; ++i) {
            value_[i] = i < size ? detail::load_value(values, at + i) : 0.0f;
        }
    }

    MX_HD magnitude_range range() const {
        magnitude_range r{0, base::f32_magnitude_mask};
        MX_UNROLL
        for (int i = 0; i < 32; ++i) {
            r.most = std::max(r.most, magnitude(i));
            r.least = std::min(r.least, magnitude(i));
        }
        return r;
    }
    MX_HD std::uint32_t least_nonzero() const {
        std::uint32_t least = ~0u;
        MX_UNROLL
        for (int i = 0; i < 32; ++i) least = std::min(least, magnitude(i) - 1u);
        return least + 1u;
    }
    MX_HD void scale(float reciprocal) {
        MX_UNROLL
        for (int i = 0; i < 32; ++i) value_[i] *= reciprocal;
    }
    MX_HD float operator[](int i) const { return value_[i]; }

    template <int n>
    MX_HD void reaching(const std::uint32_t (&from)[n], std::uint32_t (&count)[n]) const {
        for (int k = 0; k < n; ++k) {
            count[k] = 0;
            MX_UNROLL
            for (int i = 0; i < 32; ++i) count[k] += magnitude(i) >= from[k] ? 1u : 0u;
        }
    }

  private:
    MX_HD std::uint32_t magnitude(int i) const {
        return base::bits_of(value_[i]) & base::f32_magnitude_mask;
    }
    float value_[32];
};

/// The elements of a scaled block, rounded by `convert`: two that are sixteen apart. `most`: the
/// largest magnitude, float32 bits.
template <typename Values, typename Converter>
class rounded_block {
  public:
    MX_HD rounded_block(const row_grid& g, const Converter& convert, const Values& y,
                        std::uint32_t /*most*/)
        : g_(g), convert_(convert), y_(y) {}
    MX_HD value_pair operator()(int i) const { return convert_(g_, y_[i], y_[i + 16]); }

  private:
    const row_grid& g_;
    const Converter& convert_;
    const Values& y_;
};

/// bf16 by arithmetic: all at once, in pairs.
template <>
class rounded_block<bf16_block, grid_converter> {
  public:
    MX_HD rounded_block(const row_grid& g, const grid_converter&, const bf16_block& y,
                        std::uint32_t most)
        : q_(y.on_grid(g, most >= g.clamp)) {}
    MX_HD value_pair operator()(int i) const { return {q_[i], q_[i + 16]}; }

  private:
    bf16_block q_;
};

// The exact sums of a block, in integers. |y| is zero or between 2^(emax - 19) and 2^(emax + 2), q
// below 2^(emax + 1), so q is a multiple of 2^(emax - 21): of its last place, or of the last place
// of the format.

/// Sums of squares of 22 bits are multiplied by 2^8: lane_sum::add shifts by at most 63.
inline constexpr int squares = 8;

/// x in units, |x| <= 2^22 units, with magic = 1.5 * 2^23 units; rounds to an integer.
MX_HD inline int units_of(float x, float magic) {
    return static_cast<int>(base::bits_of(x + magic) - base::bits_of(magic));
}
MX_HD inline float magic_of(int unit) { return 1.5f * base::exact_pow2f(23 + unit); }

MX_HD inline std::int64_t product(int a, int b) {
    return static_cast<std::int64_t>(a) * static_cast<std::int64_t>(b);
}

/// Sums of q and q^2, in units of 2^(emax - 21).
class grid_sums {
  public:
    explicit MX_HD grid_sums(const row_grid& g) : magic_(magic_of(unit(g))) {}
    static MX_HD int unit(const row_grid& g) { return g.emax - 21; }

    /// Returns q in these units.
    MX_HD int add(float q) {
        const int n = units_of(q, magic_);
        q_ += n;
        q2_ += product(n, n);
        return n;
    }
    /// `exponent`: that of the scale.
    MX_HD void add_to(lane_totals<false>& sums, const row_grid& g, int exponent) const {
        const int at = exponent + unit(g);
        sums.d.add(std::int64_t{q_}, at);
        sums.d2.add(q2_ << squares, 2 * at - squares);
    }

  private:
    float magic_;
    int q_ = 0;
    std::int64_t q2_ = 0;
};

template <typename Values>
class row_sums;

/// The last place of a bf16 is 2^(emax - 26) or more: y is below 2^28 of these, and eight of them
/// are added up in 32 bits. Additions of 64 bits would take three instructions for each.
template <>
class row_sums<bf16_block> {
  public:
    explicit MX_HD row_sums(const row_grid& g)
        : factor_(base::exact_pow2f(26 - g.emax)), grid_(g) {}
    MX_HD void add(float y, float q) {
        const int n = static_cast<int>(y * factor_);
        const int m = grid_.add(q);
        x_[added_++ / 8] += n;
        x2_ += product(n, n);
        xd_ += product(n, m);
    }
    MX_HD void add_to(lane_totals<false>& sums, const row_grid& g, int exponent) const {
        const int at = exponent + g.emax - 26;
        sums.x.add(std::int64_t{x_[0]} + x_[1] + x_[2] + x_[3], at);
        sums.x2.add(x2_, 2 * at);
        sums.xd.add(xd_, at + exponent + grid_sums::unit(g));
        grid_.add_to(sums, g, exponent);
    }

  private:
    float factor_;
    grid_sums grid_;
    int added_ = 0;  // a constant where loops are unrolled
    int x_[row_size / 8] = {};
    std::int64_t x2_ = 0, xd_ = 0;
};

/// The last place of a float32 is at least 2^(emax - 42): y = high * 2^(emax - 20) + low * 2^(emax
/// - 42), both below 2^22.
template <>
class row_sums<float_block> {
  public:
    explicit MX_HD row_sums(const row_grid& g)
        : high_magic_(magic_of(g.emax - 20)), low_magic_(magic_of(g.emax - 42)), grid_(g) {}
    MX_HD void add(float y, float q) {
        const int high = units_of(y, high_magic_);
        const float rest = y - ((y + high_magic_) - high_magic_);
        const int low = units_of(rest, low_magic_);
        const int m = grid_.add(q);
        high_ += high;
        low_ += low;
        high2_ += product(high, high);
        both_ += product(high, low);
        low2_ += product(low, low);
        high_d_ += product(high, m);
        low_d_ += product(low, m);
    }
    MX_HD void add_to(lane_totals<false>& sums, const row_grid& g, int exponent) const {
        const int high_at = exponent + g.emax - 20;
        const int low_at = exponent + g.emax - 42;
        const int grid_at = exponent + grid_sums::unit(g);
        sums.x.add(std::int64_t{high_}, high_at);
        sums.x.add(std::int64_t{low_}, low_at);
        sums.x2.add(high2_ << squares, 2 * high_at - squares);
        sums.x2.add(both_, high_at + low_at + 1);
        sums.x2.add(low2_, 2 * low_at);
        sums.xd.add(high_d_ << squares, high_at + grid_at - squares);
        sums.xd.add(low_d_, low_at + grid_at);
        grid_.add_to(sums, g, exponent);
    }

  private:
    float high_magic_, low_magic_;
    grid_sums grid_;
    int high_ = 0, low_ = 0;
    std::int64_t high2_ = 0, both_ = 0, low2_ = 0, high_d_ = 0, low_d_ = 0;
};

}  // namespace mx::codec::cuda
