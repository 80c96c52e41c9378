// SPDX-License-Identifier: Apache-2.0
// The data of a figure as numbers.
#pragma once

#include <string>

#include "libmx/report/figure.hpp"

namespace mx::report {

/// The data of a figure as RFC 4180 CSV with a header line. Numbers round-trip exactly; undefined
/// and non-finite ones are empty. Heat maps and stacked bars: one line per row or category and one
/// column per column or part. Lines, histograms and scatter plots: one line per point or bar; a
/// path follows its points under its own name. A column `zone` lists the zones of a point or bar.
std::string csv_of(const figure& f);

}  // namespace mx::report
