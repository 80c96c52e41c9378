// SPDX-License-Identifier: Apache-2.0
// `mx bench --roads`: the code paths that are commands, and the table of all paths.
#pragma once

#include <vector>

#include "libmx/bench/roads.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

/// What commands do to a tensor in memory: analyze, compare, quantize, dequantize, cast and the
/// rest. They write over one stretch of memory again and again. `control` outlives them.
std::vector<bench::road> command_roads(tensor::dtype type, const engine::run_control& control);

report::document road_document(const std::vector<bench::road>& roads,
                               const bench::road_request& request, const bench::road_table& t);

}  // namespace mx::app
