// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "libmx/report/document.hpp"
#include "libmx/report/writers.hpp"

namespace mx::report::html {

/// The rows of `s` as a table that scrolls sideways where it is too wide.
void write_rows(const section& s, const sink& out);

}  // namespace mx::report::html
