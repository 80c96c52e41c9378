// SPDX-License-Identifier: Apache-2.0
// What is wrong with the files of a model, in sentences for people, and its tensor scales.
#pragma once

#include <string>
#include <vector>

#include "libmx/engine/model.hpp"
#include "libmx/report/record.hpp"

namespace mx::engine {

/// Remarks on the files of `tensors` (io::remarks_of), on shards that are missing among them, and
/// on those of them that lack what their siblings have (tensor_info::missing) or whose tensor
/// scales are not finite: each in a line, many in one. Reads the scales.
std::vector<std::string> remarks_on(const std::vector<tensor_ref>& tensors);

/// The scales that a tensor has one of: {"name", "operation", "value"}, or "count", "min" and "max"
/// in place of the value if each matrix has one. Numbers that are not finite are words; values of
/// files at addresses are not read. Reads them from the file.
report::list tensor_scales_of(const tensor_ref& t);

/// The same of its values in a cell of a table: "x 0.00034", "/ 9600", "x 1e-4 to 3e-4".
std::string tensor_scale_text(const tensor_ref& t);

}  // namespace mx::engine
