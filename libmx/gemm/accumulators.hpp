// SPDX-License-Identifier: Apache-2.0
// THE LIST of accumulator models.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "libmx/gemm/accumulator.hpp"

namespace mx::gemm {

struct operand_format;

/// Every model, software first, then by chip.
std::span<const accumulator> accumulators();

/// The row named `name`, or nullptr.
const accumulator* find_accumulator(std::string_view name);

/// Throws base::error (usage) if fields are outside the ranges in which every step is exact.
void validate(const accumulator& a);

/// Whether the model's accumulators and results are f16.
bool gives_f16(const accumulator& a);

/// Whether the model takes products of these formats with scales of the set `scaling` (0: none).
/// Matrix units take two different formats only among fp8, fp6 and fp4; block-scaled kinds treat
/// operands without scales as scaled by 1.
bool takes(const accumulator& m, const operand_format& a, const operand_format& b,
           std::uint32_t scaling);

/// Parses `NAME[:key=value,...]`: a row of the list with changed fields, e.g.
/// "sm90.wgmma.fp8:promote=128" or "sm100.f16:fraction_bits=24" (keys: accumulator_keys). Throws
/// base::error (usage) with the nearest valid spelling, or from validate().
accumulator parse_accumulator(std::string_view text);

/// The canonical spelling: keys that differ from the row's, in the order of the fields.
std::string to_string(const accumulator& a);

}  // namespace mx::gemm
