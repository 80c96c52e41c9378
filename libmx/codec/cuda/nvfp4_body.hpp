// SPDX-License-Identifier: Apache-2.0
// Rows under NVFP4, for the loop over blocks in row_body.hpp: the codes of elements follow from
// comparisons with limits of their block's scale (nvfp4_bounds.hpp). Figures only; blocks that
// need more than numbers of 32 bits are left to lane_body.hpp.
#pragma once

#include <cmath>
#include <cstdint>

#include "libmx/codec/cuda/nvfp4_bounds.hpp"
#include "libmx/codec/cuda/row_body.hpp"

namespace mx::codec::cuda {

/// What the warps of a recipe share.
struct nvfp4_recipe {
    /// Limits of elements are rounded up to what the stored type can represent.
    nvfp4_table limits;
    float tensor_scale;
    block::exact_totals* totals;

    /// Copies every `step`th word of a table, from `first` on.
    template <typename Values>
    MX_HD void copy(const dialect_recipe& r, std::uint32_t first, std::uint32_t step) {
        const nvfp4_table& from = *r.nvfp4;
        if (first == 0) {
            tensor_scale = r.params.tensor.decode;
            totals = r.totals;
        }
        for (std::uint32_t i = first; i <= nvfp4_table::scales; i += step)
            limits.scale[i] = from.scale[i];
        constexpr auto per_scale = static_cast<std::uint32_t>(nvfp4_table::limits);
        // Scale 0 has no limits (nvfp4_bounds.hpp): no block under it gets here.
        for (std::uint32_t i = per_scale + first; i < nvfp4_table::scales * per_scale; i += step) {
            const std::uint32_t scale = i / per_scale, which = i % per_scale;
            limits.element[scale][which] = Values::least_stored(from.element[scale][which]);
        }
    }
};

namespace detail {

// y = x * 2^(26 - level), in units that the largest |y| of a block has 2^26 of, or almost twice as
// many.
struct nvfp4_scale {
    int level;            // exponent field of the block's maximum
    std::uint32_t code;   // S = s * g
    std::uint32_t least;  // s in the least scales
    float reciprocal;     // of a unit
    float half;           // S / 2 in units, rounded
    bool fits;
};

// Largest code whose limit a magnitude reaches, 127 if the scale is NaN.
MX_HD inline std::uint32_t scale_code_of(const nvfp4_table& limits, std::uint32_t largest) {
    std::uint32_t code = 0;
    MX_UNROLL
    for (std::uint32_t step = 64; step > 0; step /= 2) {
        if (limits.scale[code + step] <= largest) code += step;
    }
    return code;
}

MX_HD inline nvfp4_scale scale_of(const nvfp4_recipe& r, std::uint32_t largest,
                                  std::uint32_t least_nonzero) {
    constexpr int place_bits = row_grid::place_bits, bias = 127;
    nvfp4_scale s{};
    s.level = largest == 0 ? bias : static_cast<int>(largest >> 23);
    s.code = scale_code_of(r.limits, largest);
    s.least = scale_in_least(s.code);
    const int field = 2 * bias + place_bits - s.level;
    s.reciprocal = base::float_from_bits(static_cast<std::uint32_t>(field) << 23);
    // By halves of the least scale; the order of factors keeps products in range.
    const float g = r.tensor_scale * base::exact_pow2f(least_scale_exponent - 1);
    s.half = static_cast<float>(s.least) * g * s.reciprocal;
    // The smallest numbers, numbers too far apart, a scale of zero or NaN, as NaN and Inf have, or
    // one far beyond the maximum.
    s.fits = largest == 0 ||
             (s.level >= 28 && least_nonzero >= static_cast<std::uint32_t>(s.level - 19) << 23 &&
              s.code > 0 && s.code < nvfp4_table::scales && s.half < 0x1p60f);
    return s;
}

using nvfp4_limits = std::uint32_t[nvfp4_table::limits];

// The code of a magnitude.
MX_HD inline std::uint32_t nvfp4_code(const nvfp4_limits& limit, std::uint32_t magnitude) {
    const bool four = magnitude >= limit[3];
    const bool two = magnitude >= (four ? limit[5] : limit[1]);
    const std::uint32_t last = two ? (four ? limit[6] : limit[2]) : (four ? limit[4] : limit[0]);
    return (four ? 4u : 0u) + (two ? 2u : 0u) + (magnitude >= last ? 1u : 0u);
}

// How many elements of a block have certain codes: not zero, the largest, a half; and whether all
// that are not zero have the same.

// By the three bits of codes, with a place in each word for every element.
struct code_planes {
    std::uint32_t four = 0, two = 0, one = 0;

    MX_HD std::uint32_t kept() const { return ones_in(four | two | one); }
    MX_HD std::uint32_t top() const { return ones_in(four & two & one); }
    MX_HD std::uint32_t subnormal() const { return ones_in(~(four | two) & one); }
    MX_HD bool alike() const {
        const std::uint32_t all = four | two | one;
        return (four == 0 || four == all) && (two == 0 || two == all) && (one == 0 || one == all);
    }
};

// By code, four bits each, of up to eight elements in a word.
struct code_counts {
    std::uint32_t eight[nvfp4_size / 8] = {};

    MX_HD std::uint32_t of(std::uint32_t code) const {
        return (eight[0] >> 4 * code & 15u) + (eight[1] >> 4 * code & 15u);
    }
    MX_HD std::uint32_t kept() const { return nvfp4_size - of(0); }
    MX_HD std::uint32_t top() const { return of(7); }
    MX_HD std::uint32_t subnormal() const { return of(1); }
    MX_HD bool alike() const {
        bool any = false;
        for (std::uint32_t code = 1; code < 8; ++code) any = any || of(code) == kept();
        return any;
    }
};

// Twice the value of an E2M1 code with its sign. The bits of the code, put where those of an
// exponent and a mantissa are, are that number in units of 2^-127, which is subnormal below 2.
inline constexpr float from_bits_of_code = 0x1p127f;
MX_HD inline float twice_value(std::uint32_t code, std::uint32_t sign) {
    return base::float_from_bits(code << 22 | sign) * from_bits_of_code;
}

// Elements y and twice their values on the grid to the sums of a block; returns about the largest
// error.
template <typename Sums>
MX_HD inline float add_number(float y, float q, float half, float most, Sums& sum) {
    sum.add(y, q);
    return larger_of(most, std::fabs(std::fma(q, -half, y)));
}

template <typename Sums>
MX_HD inline float add_numbers(const nvfp4_limits& limit, const nvfp4_scale& s,
                               float_block<nvfp4_size>& x, Sums& sum, code_counts& codes) {
    nvfp4_limits own;  // in registers
    MX_UNROLL
    for (int i = 0; i < nvfp4_table::codes; ++i) own[i] = limit[i];
    float most = 0;
    MX_UNROLL
    for (int i = 0; i < nvfp4_size; ++i) {
        const std::uint32_t sign = base::bits_of(x[i]) & base::f32_sign_mask;
        const std::uint32_t code = nvfp4_code(own, x.magnitude(i));
        codes.eight[i / 8] += 1u << 4 * code;
        most = add_number(x[i] * s.reciprocal, twice_value(code, sign), s.half, most, sum);
    }
    return most;
}

// In pairs, as above.
template <typename Sums>
MX_HD inline float add_numbers(const nvfp4_limits& limit, const nvfp4_scale& s,
                               bf16_block<nvfp4_size>& x, Sums& sum, code_planes& codes) {
    constexpr int words = nvfp4_size / 2;
    std::uint32_t q[words], bound[nvfp4_table::codes];
    MX_UNROLL
    for (int i = 0; i < nvfp4_table::codes; ++i) bound[i] = twice(limit[i] >> 16);
    MX_UNROLL
    for (int i = 0; i < words; ++i) {
        const std::uint32_t w = x.word(i);
        const std::uint32_t four = halves_reaching(w, bound[3]);
        const std::uint32_t two = halves_reaching(w, bits_of_either(four, bound[5], bound[1]));
        const std::uint32_t last = bits_of_either(two, bits_of_either(four, bound[6], bound[2]),
                                                  bits_of_either(four, bound[4], bound[0]));
        const std::uint32_t one = halves_reaching(w, last);
        const std::uint32_t place = twice(1u << i);
        codes.four |= four & place;
        codes.two |= two & place;
        codes.one |= one & place;
        const std::uint32_t code =
            bits_of_either(twice(0x100), four, bits_of_either(twice(0x80), two, one));
        q[i] = pair_product((code & twice(0x1c0)) | (w & twice(0x8000)),
                            twice(base::bits_of(from_bits_of_code) >> 16));
    }
    x.scale(s.reciprocal);
    float most = 0;
    MX_UNROLL
    for (int i = 0; i < words; ++i) {
        most = add_number(low_of(x.word(i)), low_of(q[i]), s.half, most, sum);
        most = add_number(high_of(x.word(i)), high_of(q[i]), s.half, most, sum);
    }
    return most;
}

// Counts and verdicts of a block that is not all zeros.
template <typename Values, typename Codes>
MX_HD inline void count_numbers(const nvfp4_limits& limit, const Values& x, std::uint32_t most,
                                bool has_zeros, std::uint32_t size, const Codes& codes,
                                row_tally& tally) {
    std::uint32_t nonzero = size;
    if (has_zeros) {
        constexpr std::uint32_t least_normal = 0x00800000u;
        std::uint32_t count[1];
        x.reaching({least_normal}, count);
        nonzero = count[0];
    }
    if (most >= limit[nvfp4_table::overflow]) {
        std::uint32_t count[1];
        x.reaching({limit[nvfp4_table::overflow]}, count);
        tally.overflow += count[0];
    }
    if (most >= limit[nvfp4_table::clamp]) {
        std::uint32_t count[1];
        x.reaching({limit[nvfp4_table::clamp]}, count);
        tally.clamp += count[0];
    }
    tally.nonzero += nonzero;
    const std::uint32_t kept = codes.kept(), top = codes.top();
    tally.top_code += top;
    tally.underflow += nonzero - kept;
    tally.subnormal += codes.subnormal();
    if (nonzero < 2) return;
    tally.eligible += 1;
    if (kept == nonzero) tally.collapsed += codes.alike() ? 1u : 0u;
    tally.saturated += top == nonzero ? 1u : 0u;
    tally.dead += kept == 0 ? 1u : 0u;
}

// The block of a lane with the largest error, found in float32; the errors themselves are float64.
struct nvfp4_error {
    float low = -1;     // the largest error of all blocks, rounded
    float high = -1;    // the same and more than roundings may hide
    float second = -1;  // that of the other blocks
    std::uint32_t block = 0;

    // The largest error of a block in units, of which it is less than 2^7 off.
    MX_HD void add(float most, float unit, std::uint32_t which) {
        constexpr float off = 256;
        const float own = (most + off) * unit;
        second = larger_of(second, smaller_of(high, own));
        if (own > high) block = which;
        high = larger_of(high, own);
        low = larger_of(low, most * unit);
    }
};

}  // namespace detail

/// The rows of a recipe that takes_nvfp4() accepts. Stored is the kind of block for the stored
/// type.
template <typename Stored>
class nvfp4_rows {
  public:
    using values = Stored;
    using scale = detail::nvfp4_scale;
    using block = detail::row_block<values, scale>;
    using sums = row_sums<values, 0>;  // of twice the values on the grid
    using totals = typename sums::totals;
    using error = detail::nvfp4_error;

    explicit MX_HD nvfp4_rows(const nvfp4_recipe& shared) : shared_(shared) {}

    MX_HD void survey(std::uint32_t size, block& b) const {
        b.survey(size);
        b.scale = detail::scale_of(shared_, b.range.most, b.least);
    }

    MX_HD void add(const detail::row_walk& at, block& b, int lowest, std::uint64_t, totals& to,
                   detail::row_tally& tally, error& most) const {
        const scale& s = b.scale;
        const auto& limit = shared_.limits.element[s.code];
        if (b.range.most == 0) {
            tally.zero += 1;
            return;
        }
        sums sum;
        std::conditional_t<std::is_same_v<values, bf16_block<nvfp4_size>>, detail::code_planes,
                           detail::code_counts>
            codes;
        const values stored = b.values;
        const float own = detail::add_numbers(limit, s, b.values, sum, codes);
        detail::count_numbers(limit, stored, b.range.most, b.range.least == 0, at.size(), codes,
                              tally);
        sum.add_to(to, {s.level - lowest, 0, s.least});
        constexpr int units = row_grid::place_bits;
        most.add(own, base::float_from_bits(static_cast<std::uint32_t>(s.level - units) << 23),
                 at.block);
        tally.counted_max = larger{}(tally.counted_max, b.range.most);
    }

    MX_HD mx::block::exact_totals& recipe_totals() const { return *shared_.totals; }

    /// d in halves of the least scale, times the integer that the tensor's scale is in last places.
    MX_HD detail::row_units units(int level) const {
        const std::uint32_t g = base::bits_of(shared_.tensor_scale);
        return {level - 127 - row_grid::place_bits + sums::x_place,
                static_cast<int>(g >> 23) - 150 + least_scale_exponent - 1,
                (g & base::f32_mantissa_mask) | 0x00800000u};
    }

    MX_HD void finish(const device_values& from, per_lane<detail::row_walk>& at,
                      const per_lane<error>& own, per_lane<double>& most) const {
        per_lane<float> low;
        each([&](int lane) { low[lane] = own[lane].low; });
        for (int mask = lanes_per_segment / 2; mask > 0; mask /= 2) exchange(low, mask, larger{});
        each([&](int lane) {
            most[lane] = 0;
            const error& e = own[lane];
            if (e.high < low[lane] || e.high < 0) return;
            // All blocks of the lane if several may have it.
            const bool several = e.second >= low[lane];
            const auto first = static_cast<std::uint32_t>(lane % lanes_per_segment);
            const std::uint32_t end = several ? at[lane].blocks : e.block + 1;
            detail::row_walk walk = at[lane];
            MX_ROLLED
            for (std::uint32_t b = several ? first : e.block; b < end; b += lanes_per_segment) {
                walk.go_to(b);
                most[lane] = larger{}(most[lane], largest_error(from, walk));
            }
        });
    }

  private:
    // The largest error of a block; 0 if it is left to others.
    MX_HD double largest_error(const device_values& from, const detail::row_walk& at) const {
        const std::uint64_t begin = at.at(from);
        std::uint32_t largest = 0, least = ~0u;
        MX_ROLLED
        for (std::uint32_t i = 0; i < at.size(); ++i) {
            const std::uint32_t x = magnitude_of(from, begin + i);
            largest = larger{}(largest, x);
            least = std::min(least, x - 1u);
        }
        const scale s = detail::scale_of(shared_, largest, least + 1u);
        if (!s.fits || largest == 0) return 0;
        const double half = base::exact_pow2(least_scale_exponent - 1) * s.least *
                            static_cast<double>(shared_.tensor_scale);
        double most = 0;
        MX_ROLLED
        for (std::uint32_t i = 0; i < at.size(); ++i) {
            const std::uint32_t x = magnitude_of(from, begin + i);
            const std::uint32_t code = detail::nvfp4_code(shared_.limits.element[s.code], x);
            const auto q = static_cast<double>(detail::twice_value(code, 0));
            const auto v = static_cast<double>(base::float_from_bits(x));
            most = larger{}(most, std::fabs(half * q - v));
        }
        return most;
    }
    static MX_HD std::uint32_t magnitude_of(const device_values& from, std::uint64_t at) {
        return base::bits_of(detail::load_value(from, at)) & base::f32_magnitude_mask;
    }

    const nvfp4_recipe& shared_;
};

}  // namespace mx::codec::cuda
