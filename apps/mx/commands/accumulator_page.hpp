// SPDX-License-Identifier: Apache-2.0
// docs/design/gemm.md, made from the list of accumulator models.
#pragma once

#include <string>

namespace mx::app {

std::string accumulator_page();

}  // namespace mx::app
