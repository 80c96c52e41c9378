// SPDX-License-Identifier: Apache-2.0
// What the statements of several dialects share.
#pragma once

#include "libmx/oracle/dialects.hpp"
#include "libmx/oracle/recipe.hpp"

namespace mx::oracle::parts {

/// 2^exponent as E8M0, clamped to [2^-127, 2^127].
block_scale power(int exponent);

/// Code 255.
block_scale nan_scale();

/// The scale under the rule in exact arithmetic (scale_rules.hpp); a NaN or Inf makes it NaN.
block_scale exact_scale(const recipe& r, const value_list& list, const block_maximum& m,
                        std::uint32_t draw);

/// The largest value of the format.
float largest(const value_list& list);

/// Exponent of the largest value.
int emax(const value_list& list);

/// The element with value `q`, which the format has (or NaN or Inf, for which the code is that of
/// the format, -1 where there is none).
element element_of(const value_list& list, float q);

/// The finite x / (a b) rounded as the recipe says, a and b positive finite float32, in exact
/// arithmetic. A zero keeps its sign where the format has signed zeros.
element rounded_quotient(const recipe& r, const value_list& list, float x, float a, float b,
                         std::uint32_t draw);
element rounded_quotient(const recipe& r, const value_list& list, float x, float scale,
                         std::uint32_t draw);

/// What the conversions of CUDA's headers make of NaN and Inf: positive NaN, where there is none
/// +max (integers: 0); Inf saturates. Anything else is rounded_quotient.
element saturating(const recipe& r, const value_list& list, float x, const block_scale& s,
                   std::uint32_t draw);

/// floor and ceiling of log2 x correctly rounded to float32; zero gives a very small number, Inf a
/// very large one.
int floor_log2_f32(float x);
int ceil_log2_f32(float x);

}  // namespace mx::oracle::parts
