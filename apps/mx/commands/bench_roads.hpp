// SPDX-License-Identifier: Apache-2.0
// `mx bench --roads`: the code paths of commands, and the table of all paths.
#pragma once

#include <vector>

#include "libmx/bench/roads.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

/// The commands on a tensor in memory: analyze, compare, quantize, dequantize, cast and the rest.
/// All reuse the same output memory. `control` must outlive the result.
std::vector<bench::road> command_roads(tensor::dtype type, const engine::run_control& control);

report::document road_document(const std::vector<bench::road>& roads,
                               const bench::road_request& request, const bench::road_table& t);

}  // namespace mx::app
