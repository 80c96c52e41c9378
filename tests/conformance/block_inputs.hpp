// SPDX-License-Identifier: Apache-2.0
// Blocks that are hard to emulate. Deterministic: equal seeds give equal blocks.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "libmx/format/element_formats.hpp"

namespace mx::tests {

enum class block_kind : std::uint8_t {
    gaussian,
    heavy_tail,
    clustered,   ///< all within 0.9 to 1 times a power of two
    off_centre,  ///< narrow around a mean far from zero
    log_normal,
    thresholds,  ///< a maximum within some ulps of a threshold of a scale rule
    ties,        ///< multiples of half an element quantum under a power-of-two scale
    subnormal,   ///< float32 subnormals and just above
    huge,        ///< up to the largest float32
    signed_zeros,
    sparse,
    wide,  ///< exponents over the whole float32 range
    constant,
    non_finite,
};

inline constexpr std::array block_kinds{
    block_kind::gaussian,   block_kind::heavy_tail,   block_kind::clustered, block_kind::off_centre,
    block_kind::log_normal, block_kind::thresholds,   block_kind::ties,      block_kind::subnormal,
    block_kind::huge,       block_kind::signed_zeros, block_kind::sparse,    block_kind::wide,
    block_kind::constant,   block_kind::non_finite,
};

std::string_view name_of(block_kind kind);

/// A block of `size` values of the kind, aimed at element format `f`.
std::vector<float> make_block(block_kind kind, const format::element_format& f, std::size_t size,
                              std::uint64_t seed);

}  // namespace mx::tests
