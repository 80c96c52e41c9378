// SPDX-License-Identifier: Apache-2.0
// The tables of `mx accumulators`, made from the list of models.
#pragma once

#include <string>
#include <string_view>

#include "libmx/gemm/accumulator.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

/// Every model.
report::document accumulators_document();

/// One model (with fields changed or not) field by field, in words.
report::document accumulator_document(const gemm::accumulator& m);

/// "fp8 fp6 fp4", "all"; "e8m0/32 ue4m3/16", "none".
std::string operands_text(const gemm::accumulator& m);
std::string scales_text(const gemm::accumulator& m);

/// "sm100: B200" for the chip of a row, "software" where there is none.
std::string chip_text(const gemm::accumulator& m);

/// "published", or "published in part" where some operands are extrapolated.
std::string evidence_text(const gemm::accumulator& m);

/// A number of a model that models without such a field print as "-".
std::string field_text(const gemm::accumulator& m, std::string_view key);

}  // namespace mx::app
