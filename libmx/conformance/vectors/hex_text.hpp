// SPDX-License-Identifier: Apache-2.0
// Arrays as text for Verilog's $readmemh.
#pragma once

#include <string>

#include "libmx/conformance/vectors/vector_arrays.hpp"

namespace mx::conformance::vectors {

/// What the comment at the head of a file says besides the array itself.
struct hex_heading {
    std::string recipe;
    std::string made_by;
    std::string source;
};

/// Comment lines that name recipe, tool, layout and width; then one block per line, its words from
/// the first element on, in as many digits as their bits take.
std::string hex_text(const vector_array& a, const hex_heading& heading);

}  // namespace mx::conformance::vectors
