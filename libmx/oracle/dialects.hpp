// SPDX-License-Identifier: Apache-2.0
// A second, independent statement of the dialects: each as the arithmetic operations of its
// implementation if these define it, otherwise by exact comparison. Only the names are shared with
// the library's list. Sources: docs/design/dialects.md.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "libmx/format/element_formats.hpp"
#include "libmx/format/scale_formats.hpp"
#include "libmx/oracle/number.hpp"
#include "libmx/oracle/rounding.hpp"
#include "libmx/oracle/scale_rules.hpp"

namespace mx::oracle {

struct recipe;

/// The properties of a block that scale rules use.
struct block_maximum {
    float amax = 0;  ///< the largest magnitude of what is not NaN; Inf where there is one
    bool nan = false;
};

/// A scale: 2^(code - 127), or a float32 (code -1). NaN has code 255.
struct block_scale {
    int code;
    float value;
};

/// An element before multiplication by the scale: a value of the format, or an Inf or NaN that a
/// dialect keeps (code -1 if the format has no such code). Zeros have a sign.
struct element {
    int code;
    float q;
};

/// How scales that are not powers of two are computed (float_scales.cpp).
enum class convention : std::uint8_t {
    exact,
    torchao,
    torchao_divides,
    te,
    ggml,
    modelopt,
    compressed_tensors,
    quark,
    alto,
};

struct dialect {
    std::string_view name;
    bool blocks;  ///< false: only conversions of single values
    /// The scale of a block, for power-of-two and float32 scales; `draw` is read by
    /// scale=stochastic. For other scales see scale_of().
    block_scale (*scale)(const recipe&, const value_list&, const block_maximum&,
                         std::uint32_t draw);
    /// Element x under that scale. A conversion is an element with scale 1.
    element (*convert)(const recipe&, const value_list&, float x, const block_scale&,
                       std::uint32_t draw);
    /// The E8M0 code of |x|; null if the dialect has no such conversion.
    int (*to_e8m0)(float x, bool toward_zero, bool saturate);
    convention float_scale = convention::exact;
    bool e4m3_reaches_480 = false;  ///< the NaN code of E4M3 is the number 480
};

/// All dialects, ocp first.
std::span<const dialect> dialects();

/// The dialect called `name`, or nullptr.
const dialect* find_dialect(std::string_view name);

/// The values of `f` in the dialect.
value_list list_values(const dialect& by, const format::element_format& f, bool full_range);

/// For dialect systems-scaling with rule floor-bump, on one row of consecutive blocks of `cols`
/// elements (the last may be shorter): per column, whether the exponent is raised by one. As in its
/// code, the decision uses the maximum of the column over all blocks of the row, not the maximum of
/// a block.
std::vector<bool> bumped_columns(std::span<const float> row, std::size_t cols);

// Everything that determines a quantized block, in the oracle's own terms.

enum class offset_range : std::uint8_t { max, half };

/// Four-over-six: the error measure by which the scale is chosen.
enum class selection : std::uint8_t { none, mse, mae, abs_max };

struct recipe {
    const format::element_format* element = nullptr;
    scale_rule rule = scale_rule::floor;
    integer_emax emax = integer_emax::zero;
    rounding_choice round;
    bool full_range = false;  ///< integers use -2^(bits-1)
    bool has_offset = false;  ///< binary16 offset per block
    offset_range range = offset_range::max;
    std::uint64_t seed = 0;  ///< of stochastic rounding
    /// nullptr: ocp
    const dialect* by = nullptr;
    bool flush_subnormals = false;  ///< microxcaling's flush_fp32_subnorms
    selection select = selection::none;
    bool full_bound = false;            ///< four-over-six: no room for scales half as large again
    bool fp16_candidates = false;       ///< four-over-six of te: errors before the outer scale
    selection search = selection::mse;  ///< of the searched rules, mse or mae
    int reach = -1;                     ///< of the searched rules; -1: all codes
    const format::scale_format* scale_format = format::find_scale_format("e8m0");
    /// max |x| over the finite elements that share the outer scale (two-level)
    float tensor_amax = 0;
    /// Extents of the areas that share an outer scale; 0 if the whole tensor does.
    std::uint64_t outer_rows = 0, outer_cols = 0;
    float given = 0;  ///< the outer scale as files hold it; 0: it follows from tensor_amax
    std::uint64_t block_rows = 1;
    std::uint64_t block_cols = 32;
};

// Helpers shared by several dialects.

namespace parts {

/// 2^exponent as E8M0, clamped to [2^-127, 2^127].
block_scale power(int exponent);

/// Code 255.
block_scale nan_scale();

/// The scale of the rule in exact arithmetic (scale_rules.hpp); NaN if the block contains NaN or
/// Inf.
block_scale exact_scale(const recipe& r, const value_list& list, const block_maximum& m,
                        std::uint32_t draw);

/// The largest value of the format.
float largest(const value_list& list);

/// Exponent of the largest value.
int emax(const value_list& list);

/// The value that a recipe subtracts as emax: emax, but 1 for integers with int_emax=1.
int emax(const recipe& r, const value_list& list);

/// The element with value `q`, which must be a value of the format, NaN or Inf; for NaN and Inf the
/// code is the format's, or -1 if it has none.
element element_of(const value_list& list, float q);

/// x / (a b) rounded by the recipe's rounding, in exact arithmetic; x is finite, a and b are
/// positive finite float32. A zero keeps its sign if the format has signed zeros.
element rounded_quotient(const recipe& r, const value_list& list, float x, float a, float b,
                         std::uint32_t draw);
element rounded_quotient(const recipe& r, const value_list& list, float x, float scale,
                         std::uint32_t draw);

/// NaN and Inf as in the conversions of CUDA's headers: NaN becomes positive NaN, or +max in
/// formats without NaN (integers: 0); Inf saturates. Other values follow rounded_quotient.
element saturating(const recipe& r, const value_list& list, float x, const block_scale& s,
                   std::uint32_t draw);

/// floor and ceiling of log2 x, where log2 x is correctly rounded to float32; zero gives a very
/// small number, Inf a very large one.
int floor_log2_f32(float x);
int ceil_log2_f32(float x);

}  // namespace parts

// pytorch/FBGEMM@71d6f8b triton/quantize_ref.py, py_quantize_mx4: integer operations on float32
// bits in int32 and int8 tensors; int8 wraps and x86 shifts count modulo 32.

namespace fbgemm {

block_scale scale(const recipe& r, const value_list& list, const block_maximum& m,
                  std::uint32_t draw);

element convert(const recipe& r, const value_list& list, float x, const block_scale& s,
                std::uint32_t draw);

}  // namespace fbgemm

// microsoft/microxcaling@7bc4195 mx_ops._quantize_mx and elemwise_ops._quantize_elemwise_core, as
// the sequence of their tensor operations in the arithmetic of the tensor's type.

namespace microxcaling {

/// floor(log2 amax) - emax, where amax 0 counts as 2^-126; NaN beyond 2^127.
block_scale scale(const float_kind& kind, const recipe& r, const value_list& list,
                  const block_maximum& m);

element convert(const float_kind& kind, const recipe& r, const value_list& list, float x,
                const block_scale& s);

/// Whether flush_fp32_subnorms multiplies a block with this maximum by zero.
bool flushes(const block_maximum& m);

}  // namespace microxcaling

/// The code from `scales` (the scale of every code in ticks, ascending, possibly from zero) that
/// minimizes the sum over the block of squared (or absolute) differences, with each element rounded
/// to nearest; the largest of equals. With a reach, only codes at most that far from `first`. `x`
/// is finite and not all zero.
int searched_code(const recipe& r, const value_list& list, std::span<const float> x,
                  const std::vector<integer>& scales, int first);

// Scales that are not powers of two: UE4M3, alone or under a tensor scale (NVFP4), and float32 (FP8
// block scaling). Each convention performs the float32 operations of its source; `exact` is our own
// definition, exact quotients rounded once.

/// Whether the rule of `r` gives such scales.
bool has_float_scale(const recipe& r);

/// A scale S = block * tensor; `block` is NaN for a NaN block.
struct float_scale {
    int code;  ///< of UE4M3; -1 for float32
    float block;
    float tensor;  ///< 1 where there is none
    float factor;  ///< what the elements are multiplied with (torchao, te) or divided by (others)
};

/// The scale of the block `x`; under four-over-six, the better of two.
float_scale scale_of(const recipe& r, const value_list& list, std::span<const float> x,
                     std::span<const std::uint32_t> draws);

/// Element `x` under that scale.
element convert(const recipe& r, const value_list& list, float x, const float_scale& s,
                std::uint32_t draw);

/// The float32 value of an element with value q.
float value_of(const recipe& r, const float_scale& s, float q);

}  // namespace mx::oracle
