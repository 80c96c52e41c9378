// SPDX-License-Identifier: Apache-2.0
// What a figure shows, as numbers.
#pragma once

#include <string>

#include "libmx/report/figure.hpp"

namespace mx::report {

/// The data of a figure as RFC 4180 CSV with a header line. Numbers read back exactly; undefined
/// and not finite ones are empty. Heat maps and stacked bars: a line per row or category and a
/// column per column or part. Lines, histograms and scatter plots: a line per point or bar; a path
/// follows its points under its own name. A column `zone` names the zones a point or bar lies in.
std::string csv_of(const figure& f);

}  // namespace mx::report
