// SPDX-License-Identifier: Apache-2.0
// The values of a block in one lane, padded with zeros: first as stored, then multiplied by a power
// of two. bf16 stay two to a word; others are float32.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "libmx/base/bits.hpp"
#include "libmx/codec/cuda/lane_totals.hpp"
#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/codec/cuda/segment_blocks.hpp"

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

/// The smallest bf16 that is no less than a magnitude, given as float32 bits, in both halves.
MX_HD constexpr std::uint32_t pair_bound(std::uint32_t bits) {
    return twice((bits + 0xffffu) >> 16);
}

MX_HD inline std::uint32_t ones_in(std::uint32_t word) {
#if defined(__CUDA_ARCH__)
    return static_cast<std::uint32_t>(__popc(word));
#else
    return static_cast<std::uint32_t>(__builtin_popcount(word));
#endif
}

/// Bits of `yes` where `which` has ones, else of `no`.
MX_HD constexpr std::uint32_t bits_of_either(std::uint32_t which, std::uint32_t yes,
                                             std::uint32_t no) {
    return (which & yes) | (~which & no);
}

/// All ones in each half whose magnitude is no less than that of `bound`, which has no sign.
MX_HD inline std::uint32_t halves_reaching(std::uint32_t pair, std::uint32_t bound) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    return __hge2_mask(__habs2(as_pair(pair)), as_pair(bound));
#else
    // Neither half borrows, and its top bit stays set unless the magnitude is smaller.
    const std::uint32_t reached = ((pair | 0x80008000u) - bound) & 0x80008000u;
    return (reached >> 15) * 0xffffu;
#endif
}

/// The lower bytes of four halves, those of `a` first.
MX_HD inline std::uint32_t bytes_of(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
    return __byte_perm(a, b, 0x6420);
#else
    return (a & 0xffu) | (a >> 8 & 0xff00u) | (b & 0xffu) << 16 | (b >> 16 & 0xffu) << 24;
#endif
}

/// The largest number of values in a block under an OCP recipe.
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

/// A block of up to `n` values, a multiple of four.
template <int n>
class bf16_block {
  public:
    static constexpr int size = n;
    /// Whether there are registers to load a block while the one before it is processed.
    static constexpr bool ahead = true;

    MX_HD void load(const device_values& values, std::uint64_t at, std::uint32_t count) {
        if (count == n && at % 8 == 0) {
            MX_UNROLL
            for (int i = 0; i < words; i += 4) {
                const detail::sixteen_bytes v = detail::load_sixteen(
                    values.data + (at + static_cast<std::uint64_t>(2 * i)) * 2);
                for (int k = 0; k < 4; ++k) word_[i + k] = v.word[k];
            }
            return;
        }
        MX_UNROLL
        for (std::uint32_t i = 0; i < n; i += 2) {
            const std::uint32_t low = i < count ? half(values, at + i) : 0u;
            const std::uint32_t high = i + 1 < count ? half(values, at + i + 1) : 0u;
            word_[i / 2] = low | high << 16;
        }
    }

    MX_HD magnitude_range range() const {
        std::uint32_t most = 0, least = 0x7fff7fffu;
        MX_UNROLL
        for (int i = 0; i < words; i += 2) {
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
        for (int i = 0; i < words; ++i) {
            // Zeros wrap to the largest number.
            least = std::min(least, ((word_[i] & 0x7fffu) - 1u) & 0xffffu);
            least = std::min(least, ((word_[i] >> 16 & 0x7fffu) - 1u) & 0xffffu);
        }
        return ((least + 1u) & 0xffffu) << 16;
    }

    /// Multiplies by a power of two; results are normal or zero.
    MX_HD void scale(float by) {
        const std::uint32_t factor = twice(base::bits_of(by) >> 16);
        MX_UNROLL
        for (int i = 0; i < words; ++i) word_[i] = pair_product(word_[i], factor);
    }

    /// Value `i`, which must be a constant.
    MX_HD float operator[](int i) const {
        return i % 2 == 0 ? low_of(word_[i / 2]) : high_of(word_[i / 2]);
    }

    /// The smallest magnitude of the type that is no less than one of float32, as float32 bits.
    static MX_HD std::uint32_t least_stored(std::uint32_t bits) {
        return (bits + 0xffffu) & 0xffff0000u;
    }

    /// Values 2 * i and 2 * i + 1.
    MX_HD std::uint32_t word(int i) const { return word_[i]; }

    /// Counts the magnitudes >= each of `from`, float32 bits of non-zero numbers of at most 8 bits,
    /// or one more than such bits.
    template <int k>
    MX_HD void reaching(const std::uint32_t (&from)[k], std::uint32_t (&count)[k]) const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        // Two comparisons per instruction, each of them all ones in its half. The sum of such words
        // is 65536 * (lower - upper) - lower.
        std::uint32_t sum[k] = {};
        MX_UNROLL
        for (int i = 0; i < words; ++i) {
            for (int j = 0; j < k; ++j) sum[j] += halves_reaching(word_[i], pair_bound(from[j]));
        }
        for (int j = 0; j < k; ++j) {
            const std::uint32_t lower = -sum[j] & 0xffffu;
            count[j] = 2 * lower - ((sum[j] + lower) >> 16);
            count[j] &= 0xffffu;
        }
#else
        for (int j = 0; j < k; ++j) {
            const std::uint32_t bound = pair_bound(from[j]);
            std::uint32_t reached = 0;
            MX_UNROLL
            for (int i = 0; i < words; ++i) {
                // Neither half borrows, and its top bit stays set unless the magnitude is smaller.
                const std::uint32_t d = (word_[i] | 0x80008000u) - bound;
                reached = reached >> 1 | (d & 0x80008000u);
            }
            count[j] = ones_in(reached);
        }
#endif
    }

  private:
    static MX_HD std::uint32_t half(const device_values& values, std::uint64_t at) {
        std::uint16_t h;
        std::memcpy(&h, __builtin_assume_aligned(values.data + at * sizeof h, sizeof h), sizeof h);
        return h;
    }
    static constexpr int words = n / 2;
    std::uint32_t word_[words];
};

template <int n>
class float_block {
  public:
    static constexpr int size = n;
    static constexpr bool ahead = false;

    MX_HD void load(const device_values& values, std::uint64_t at, std::uint32_t count) {
        if (values.type == tensor::dtype::f32 && count == n && at % 4 == 0) {
            MX_UNROLL
            for (int i = 0; i < n; i += 4) {
                const detail::sixteen_bytes v =
                    detail::load_sixteen(values.data + (at + static_cast<std::uint64_t>(i)) * 4);
                for (int k = 0; k < 4; ++k) value_[i + k] = base::float_from_bits(v.word[k]);
            }
            return;
        }
        MX_UNROLL
        for (std::uint32_t i = 0; i < n; ++i) {
            value_[i] = i < count ? detail::load_value(values, at + i) : 0.0f;
        }
    }

    MX_HD magnitude_range range() const {
        magnitude_range r{0, base::f32_magnitude_mask};
        MX_UNROLL
        for (int i = 0; i < n; ++i) {
            r.most = std::max(r.most, magnitude(i));
            r.least = std::min(r.least, magnitude(i));
        }
        return r;
    }
    MX_HD std::uint32_t least_nonzero() const {
        std::uint32_t least = ~0u;
        MX_UNROLL
        for (int i = 0; i < n; ++i) least = std::min(least, magnitude(i) - 1u);
        return least + 1u;
    }
    MX_HD void scale(float reciprocal) {
        MX_UNROLL
        for (int i = 0; i < n; ++i) value_[i] *= reciprocal;
    }
    MX_HD float operator[](int i) const { return value_[i]; }
    static MX_HD std::uint32_t least_stored(std::uint32_t bits) { return bits; }

    template <int k>
    MX_HD void reaching(const std::uint32_t (&from)[k], std::uint32_t (&count)[k]) const {
        for (int j = 0; j < k; ++j) {
            count[j] = 0;
            MX_UNROLL
            for (int i = 0; i < n; ++i) count[j] += magnitude(i) >= from[j] ? 1u : 0u;
        }
    }

    /// The magnitude of value `i`, float32 bits.
    MX_HD std::uint32_t magnitude(int i) const {
        return base::bits_of(value_[i]) & base::f32_magnitude_mask;
    }

  private:
    float value_[n];
};

// The exact sums of a block, in integers. |y| is zero or at least 2^7 and below 2^28, and the last
// place of a float32 at least 2^-16. q, or the number that stands for it, is a multiple of
// 2^q_place, of at most 2^22 of them.

/// The sums of a lane over several blocks, in places of their own: those of x in 2^x_place units
/// (see row_sums) at a scale that all blocks reach, those of d in 2^q_place units, those of
/// products in products of these.
template <typename X>
struct row_totals {
    X x;
    std::int64_t d;
    wide_integer x2, d2, xd;
};

/// How the sums of a block are added to those of a lane: those of y times 2^x_shift, those of q
/// times `times` * 2^q_shift.
struct row_weight {
    int x_shift, q_shift;
    std::uint32_t times;
};

MX_HD inline std::uint64_t product(int a, int b) {
    return static_cast<std::uint64_t>(std::int64_t{a} * std::int64_t{b});
}

/// Integers that a float32 addition makes: the sum of x, |x| <= 2^22 places, and a magic number of
/// 1.5 * 2^23 places has in its last bits that of the integer. As a whole the bits are the integer
/// plus those of the magic number, which is subtracted from sums of n at the end, modulo 2^32 or
/// 2^64.
struct biased {
    std::uint32_t sum = 0;
    MX_HD int add(float x, float magic) {
        const std::uint32_t own = base::bits_of(x + magic);
        sum += own;
        return static_cast<int>(own);
    }
    MX_HD int total(int n, float magic) const {
        return static_cast<int>(sum - static_cast<std::uint32_t>(n) * base::bits_of(magic));
    }
};

/// The sum of n products a * b, given that of biased numbers, and the sums of a and b.
MX_HD inline std::int64_t unbiased(int n, std::uint64_t sum, std::int64_t a, float magic_a,
                                   std::int64_t b, float magic_b) {
    const std::uint64_t bias_a = base::bits_of(magic_a), bias_b = base::bits_of(magic_b);
    return static_cast<std::int64_t>(sum - static_cast<std::uint64_t>(a) * bias_b -
                                     static_cast<std::uint64_t>(b) * bias_a -
                                     static_cast<std::uint64_t>(n) * bias_a * bias_b);
}

/// See biased.
MX_HD constexpr float magic_of_place(int place) {
    return 1.5f * static_cast<float>(1 << 23) * static_cast<float>(1 << place);
}

/// Adds n * 2^shift, shift <= 63.
MX_HD inline void add_shifted(wide_integer& to, std::int64_t n, int shift) {
    to = to + wide_integer{static_cast<std::uint64_t>(n) << shift, (n >> 1) >> (63 - shift)};
}

MX_HD inline wide_integer widened(const wide_integer& n) { return n; }
MX_HD inline wide_integer widened(std::int64_t n) {
    return {static_cast<std::uint64_t>(n), n < 0 ? -1 : 0};
}

template <typename Values, int place>
class row_sums;

/// Eight y are added up in 32 bits. Additions of 64 bits would take three instructions for each.
template <int n, int place>
class row_sums<bf16_block<n>, place> {
  public:
    static constexpr int x_place = 0, q_place = place;
    using totals = row_totals<std::int64_t>;
    /// Exponents of scales from that of the totals on: no sum is shifted by more than 63 bits, and
    /// those of 32 lanes with `rounds` blocks each do not overflow.
    static constexpr int span = 20;
    static constexpr int rounds = 32;

    MX_HD void add(float y, float q) {
        const int own = static_cast<int>(y);
        const int m = q_.add(q, q_magic);
        x_[added_++ / 8] += own;
        x2_ += product(own, own);
        q2_ += product(m, m);
        xd_ += product(own, m);
    }
    MX_HD void add_to(totals& to, const row_weight& w) const {
        std::int64_t x = 0;
        for (const int part : x_) x += part;
        const int q = q_.total(n, q_magic);
        const std::int64_t times = w.times;
        to.x += x << w.x_shift;
        to.d += q * times << w.q_shift;
        add_shifted(to.x2, static_cast<std::int64_t>(x2_), 2 * w.x_shift);
        add_shifted(to.d2, unbiased(n, q2_, q, q_magic, q, q_magic) * times * times, 2 * w.q_shift);
        const std::uint64_t bias = static_cast<std::uint64_t>(x) * base::bits_of(q_magic);
        add_shifted(to.xd, static_cast<std::int64_t>(xd_ - bias) * times, w.x_shift + w.q_shift);
    }

  private:
    static constexpr float q_magic = magic_of_place(q_place);
    int added_ = 0;  // a constant where loops are unrolled
    int x_[n / 8] = {};
    biased q_;
    std::uint64_t x2_ = 0, q2_ = 0, xd_ = 0;
};

/// y = high * 2^6 + low * 2^-16, both integers of at most 2^22.
template <int n, int place>
class row_sums<float_block<n>, place> {
  public:
    static constexpr int x_place = -16, q_place = place;
    using totals = row_totals<wide_integer>;
    static constexpr int span = 9;
    static constexpr int rounds = 32;

    MX_HD void add(float y, float q) {
        const int high = high_.add(y, high_magic);
        const float rest = y - ((y + high_magic) - high_magic);
        const int low = low_.add(rest, low_magic);
        const int m = q_.add(q, q_magic);
        high2_ += product(high, high);
        both_ += product(high, low);
        low2_ += product(low, low);
        q2_ += product(m, m);
        high_q_ += product(high, m);
        low_q_ += product(low, m);
    }
    MX_HD void add_to(totals& to, const row_weight& w) const {
        const int high = high_.total(n, high_magic);
        const int low = low_.total(n, low_magic);
        const int q = q_.total(n, q_magic);
        const std::int64_t times = w.times;
        const int x_shift = w.x_shift, both_shift = w.x_shift + w.q_shift;
        add_shifted(to.x, std::int64_t{high} * (1 << digit) + low, x_shift);
        to.d += q * times << w.q_shift;
        add_shifted(to.x2, unbiased(n, high2_, high, high_magic, high, high_magic),
                    2 * (x_shift + digit));
        add_shifted(to.x2, unbiased(n, both_, high, high_magic, low, low_magic),
                    2 * x_shift + digit + 1);
        add_shifted(to.x2, unbiased(n, low2_, low, low_magic, low, low_magic), 2 * x_shift);
        add_shifted(to.d2, unbiased(n, q2_, q, q_magic, q, q_magic) * times * times, 2 * w.q_shift);
        add_shifted(to.xd, unbiased(n, high_q_, high, high_magic, q, q_magic) * times,
                    both_shift + digit);
        add_shifted(to.xd, unbiased(n, low_q_, low, low_magic, q, q_magic) * times, both_shift);
    }

  private:
    static constexpr int digit = 22;
    static constexpr float q_magic = magic_of_place(q_place);
    static constexpr float high_magic = 0x1.8p29f, low_magic = 0x1.8p7f;
    biased high_, low_, q_;
    std::uint64_t high2_ = 0, both_ = 0, low2_ = 0, q2_ = 0, high_q_ = 0, low_q_ = 0;
};

/// The codes of a block, four to a word.
struct row_codes {
    std::uint32_t word[row_size / 4];
};

/// Rounds a scaled block by `convert`, adds it up, and, with `coded`, returns its codes. Returns
/// the largest |y - q|. `beyond`: elements may round beyond the largest number.
template <bool coded, typename Values, typename Sums, typename Converter>
MX_HD inline float add_rounded(const row_grid& g, const Converter& convert, const Values& y,
                               bool /*beyond*/, Sums& sum, row_codes& codes) {
    float most = 0;
    MX_UNROLL
    for (int i = 0; i < row_size; i += 2) {
        const value_pair q = convert.values(g, y[i], y[i + 1]);
        sum.add(y[i], q.first);
        sum.add(y[i + 1], q.second);
        most =
            larger_of(most, larger_of(std::fabs(q.first - y[i]), std::fabs(q.second - y[i + 1])));
        if constexpr (coded) {
            const std::uint32_t two = convert.codes(g, y[i], y[i + 1]);
            codes.word[i / 4] = i % 4 == 0 ? two : codes.word[i / 4] | two << 16;
        }
    }
    return most;
}

/// bf16 by arithmetic: in pairs.
template <bool coded, typename Sums>
MX_HD inline float add_rounded(const row_grid& g, const grid_converter&,
                               const bf16_block<row_size>& y, bool beyond, Sums& sum,
                               row_codes& codes) {
    constexpr int words = row_size / 2;
    constexpr std::uint32_t signs = 0x80008000u;
    std::uint32_t q[words];
    std::uint32_t before = 0;  // two codes, each in a half
    MX_UNROLL
    for (int i = 0; i < words; ++i) {
        const std::uint32_t w = y.word(i);
        const std::uint32_t magic = larger_of_sum(w & 0x7f807f80u, g.to_magics, g.least_magics);
        q[i] = pair_difference(pair_sum(w, magic), magic);
        if constexpr (coded) {
            // As code_of().
            const std::uint32_t binades = (magic - g.least_magics) >> (g.code_shift - 16);
            const std::uint32_t code = (pair_sum(w & ~signs, magic) - magic) + binades;
            const std::uint32_t two = smaller_halves(code, g.largest_codes, g.largest_codes) |
                                      (w & signs) >> (15 - g.sign_shift);
            if (i % 2 == 1) codes.word[i / 2] = bytes_of(before, two);
            before = two;
        }
    }
    if (beyond) {
        MX_UNROLL
        for (int i = 0; i < words; ++i) q[i] = pair_between(q[i], g.largests | signs, g.largests);
    }
    std::uint32_t most = 0;
    MX_UNROLL
    for (int i = 0; i < words; i += 2) {
        most = larger_halves(most, pair_difference(q[i], y.word(i)) & ~signs,
                             pair_difference(q[i + 1], y.word(i + 1)) & ~signs);
    }
    MX_UNROLL
    for (int i = 0; i < words; ++i) {
        sum.add(low_of(y.word(i)), low_of(q[i]));
        sum.add(high_of(y.word(i)), high_of(q[i]));
    }
    return larger_of(low_of(most), high_of(most));
}

}  // namespace mx::codec::cuda
