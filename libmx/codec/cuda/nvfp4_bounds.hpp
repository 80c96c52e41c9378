// SPDX-License-Identifier: Apache-2.0
// NVFP4 as comparisons: scales follow the maxima of blocks in one direction, and codes the
// magnitudes of elements, so a table of the lower limits of all scales and codes says what a
// dialect does, whatever its arithmetic. A device finds the table of a recipe before it quantizes
// rows (nvfp4_body.hpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "libmx/base/bits.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/dialects.hpp"
#include "libmx/codec/float_scale.hpp"
#include "libmx/codec/word_counts.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/format/scale_formats.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::codec::cuda {

/// The largest number of values in a block that nvfp4_body.hpp takes.
inline constexpr int nvfp4_size = 16;

/// Lower limits as float32 bits, f32_infinity where nothing finite reaches them.
struct nvfp4_table {
    static constexpr int scales = 127;  ///< UE4M3 codes but NaN
    static constexpr int codes = 7;     ///< of E2M1, but zero
    static constexpr int overflow = codes, clamp = codes + 1, limits = codes + 2;

    /// Of maxima whose block gets this scale or a larger one (127: NaN).
    std::uint32_t scale[scales + 1];
    /// By scale: of magnitudes that become code i + 1 or a larger one; that overflow; that round
    /// beyond the largest number. Undefined for 0 and for scales that no maximum gets.
    std::uint32_t element[scales][limits];
};

/// Whether nvfp4_table and nvfp4_body.hpp support a recipe with these blocks: UE4M3 scales, times
/// one of the tensor that is not extreme, over E2M1.
inline bool takes_nvfp4(const block_params& p, std::uint64_t block_rows, std::uint64_t block_cols) {
    if (p.ocp || block_rows != 1 || block_cols > nvfp4_size) return false;
    // Counting also needs scales and codes that go in one direction; the type does not matter.
    if (p.scale_format->name != "ue4m3" || !counts_words(p, tensor::dtype::bf16)) return false;
    const format::element_format& e2m1 = *format::find_element_format("e2m1");
    if (p.element.bits != e2m1.bits() || p.element.mantissa_bits != e2m1.mantissa_bits ||
        p.element.max_positive != e2m1.max_code() || !p.element.floating) {
        return false;
    }
    switch (p.by->two_level.value) {
        case two_level_kind::exact:
        case two_level_kind::torchao:
        case two_level_kind::torchao_divides:
        case two_level_kind::te:
        case two_level_kind::modelopt:
        case two_level_kind::alto:
            break;
        case two_level_kind::ggml:                // not in one direction
        case two_level_kind::compressed_tensors:  // d is not s * g * q
        case two_level_kind::quark:               // UE5M3 only
        case two_level_kind::none:
            return false;
    }
    return p.tensor.decode >= 0x1p-40f && p.tensor.decode <= 0x1p40f;
}

/// A UE4M3 scale in units of 2^-9, the smallest of them.
MX_HD inline std::uint32_t scale_in_least(std::uint32_t code) {
    return code < 8 ? code : (8u | (code & 7u)) << (code / 8 - 1);
}
inline constexpr int least_scale_exponent = -9;

/// The least magnitude, as float32 bits above zero, that reached(bits) accepts, as it does all
/// larger ones; f32_infinity if it accepts none. `near` is an estimate.
template <typename Reached>
MX_HD inline std::uint32_t least_reaching(float near, Reached&& reached) {
    std::uint32_t low = 0, high = base::f32_infinity;
    constexpr std::uint32_t reach = 4;
    const std::uint32_t guess =
        std::clamp(base::bits_of(near), reach + 1, base::f32_infinity - reach - 1);
    if (!reached(guess + reach)) {
        low = guess + reach;
    } else {
        high = guess + reach;
        if (reached(guess - reach)) {
            high = guess - reach;
        } else {
            low = guess - reach;
        }
    }
    while (high - low > 1) {
        const std::uint32_t middle = low + (high - low) / 2;
        (reached(middle) ? high : low) = middle;
    }
    return high;
}

/// Writes a limit of a table: limit `which` of the elements under scale `code`; with `which` 0 also
/// that of the scale, and with `code` 1 those of scales 0 and 127.
MX_HD inline void find_limit(const block_params& p, std::uint32_t code, int which,
                             nvfp4_table& to) {
    const float six = p.largest;
    const float g = p.tensor.decode;
    const auto value = [&](std::uint32_t c) { return format::decode_scale(*p.scale_format, c); };
    const auto limit_of_scale = [&](std::uint32_t c, float between) {
        return least_reaching(between * six * g, [&](std::uint32_t bits) {
            return choose_scale(p, bits, six).code >= c;
        });
    };
    const std::uint32_t from = limit_of_scale(code, (value(code - 1) + value(code)) / 2);
    if (which == 0) to.scale[code] = from;
    if (which == 0 && code == 1) {
        to.scale[0] = 0;
        to.scale[nvfp4_table::scales] = limit_of_scale(nvfp4_table::scales, 464.0f);
    }
    std::uint32_t& limit = to.element[code][which];
    limit = base::f32_infinity;
    const float_scale scale = choose_scale(p, from, six);
    if (from == base::f32_infinity || scale.code != code) return;  // no block gets it
    const float_scale_encoder encoder(p, scale);
    // Between neighbours; overflow begins at the largest number, clamping half a quantum beyond.
    const auto upper = static_cast<std::uint32_t>(which) + 1;
    float near = which == nvfp4_table::overflow ? six : 7.0f;
    if (which < nvfp4_table::codes) near = (p.value[upper - 1] + p.value[upper]) / 2;
    limit = least_reaching(near * value(code) * g, [&](std::uint32_t bits) {
        const float_scale_encoder::element e = encoder.encode(base::float_from_bits(bits), 0);
        if (which == nvfp4_table::overflow) return e.exact.beyond_max;
        if (which == nvfp4_table::clamp) return e.exact.unbounded > p.element.max_positive;
        return e.magnitude >= upper;
    });
}

/// The limits of a table, one for each call of find_limit.
inline constexpr std::uint32_t limits_of_table =
    static_cast<std::uint32_t>((nvfp4_table::scales - 1) * nvfp4_table::limits);
MX_HD inline void find_limit(const block_params& p, std::uint32_t index, nvfp4_table& to) {
    constexpr auto limits = static_cast<std::uint32_t>(nvfp4_table::limits);
    find_limit(p, 1 + index / limits, static_cast<int>(index % limits), to);
}

}  // namespace mx::codec::cuda
