// SPDX-License-Identifier: Apache-2.0
// THE LIST of accumulator models.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "libmx/gemm/accumulator.hpp"

namespace mx::gemm {

/// Every model, software first, then by chip.
std::span<const accumulator> accumulators();

/// Parses `NAME[:key=value,...]`: a row of the list with fields changed, e.g.
/// "sm90.wgmma.fp8:promote=128" or "sm100.f16:fraction_bits=24" (keys: the fields that are numbers
/// or policies). Throws base::error (usage) naming the nearest valid spelling.
accumulator parse_accumulator(std::string_view text);

/// The canonical spelling: keys that differ from the row's, in the order of the fields.
std::string to_string(const accumulator& a);

}  // namespace mx::gemm
