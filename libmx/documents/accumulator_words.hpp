// SPDX-License-Identifier: Apache-2.0
// Descriptions of matrix unit models for `mx explain accumulators` and docs/design/gemm.md.
#pragma once

#include <string>
#include <string_view>

#include "libmx/gemm/accumulator.hpp"

namespace mx::documents {

/// "fp8 fp6 fp4", "all"; "e8m0/32 ue4m3/16", "none".
std::string operands_text(const gemm::accumulator& m);
std::string scales_text(const gemm::accumulator& m);

/// "sm100: B200" for the chip of a row, "software" where there is none.
std::string chip_text(const gemm::accumulator& m);

/// "published", or "published in part" if some operands are extrapolated.
std::string evidence_text(const gemm::accumulator& m);

/// A number of a model; "-" if the model has no such field.
std::string field_text(const gemm::accumulator& m, std::string_view key);

}  // namespace mx::documents
