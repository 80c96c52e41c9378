// SPDX-License-Identifier: Apache-2.0
// The dialects, stated a second time: each as the arithmetic its implementation performs, operation
// by operation where that is how it is defined, by exact comparison elsewhere. Only the names are
// shared with the library's list. Sources: docs/design/dialects.md.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "libmx/oracle/rounding.hpp"
#include "libmx/oracle/scale_rules.hpp"

namespace mx::oracle {

struct recipe;

/// What a block shows to a scale rule.
struct block_maximum {
    float amax = 0;  ///< the largest magnitude of what is not NaN; Inf where there is one
    bool nan = false;
};

/// A scale: 2^(code - 127), or a float32 (code -1). NaN is code 255.
struct block_scale {
    int code;
    float value;
};

/// An element before it is multiplied by the scale: a value of the format, or the Inf or NaN that a
/// dialect keeps (code -1 where the format cannot hold it). Zeros have a sign.
struct element {
    int code;
    float q;
};

/// How scales that are no powers of two are formed (fractional.hpp).
enum class convention : std::uint8_t { exact, torchao, te, ggml, modelopt, compressed_tensors };

struct dialect {
    std::string_view name;
    bool blocks;  ///< false: only conversions of single values
    /// The scale of a block; `draw` is read by scale=stochastic. Power-of-two and float32 scales;
    /// for the others see two_level.hpp.
    block_scale (*scale)(const recipe&, const value_list&, const block_maximum&,
                         std::uint32_t draw);
    /// Element x under that scale. A conversion is an element under the scale 1.
    element (*convert)(const recipe&, const value_list&, float x, const block_scale&,
                       std::uint32_t draw);
    /// The E8M0 code of |x|; null where it has no such conversion.
    int (*to_e8m0)(float x, bool toward_zero, bool saturate);
    convention fractional = convention::exact;
    bool e4m3_reaches_480 = false;  ///< the NaN code of E4M3 is the number 480
};

/// All of them, ocp first.
std::span<const dialect> dialects();

/// The one called `name`, or nullptr.
const dialect* find_dialect(std::string_view name);

/// The values of `f` as the dialect sees them.
value_list list_values(const dialect& by, const format::element_format& f, bool full_range);

/// Dialect systems-scaling, rule floor-bump, on one row of consecutive blocks of `cols` elements
/// (the last may be short): whether the exponent is one higher, per column. As coded there, the
/// maximum that decides is that of the column over all blocks of the row, not that of a block.
std::vector<bool> bumped_columns(std::span<const float> row, std::size_t cols);

}  // namespace mx::oracle
