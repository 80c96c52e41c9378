// SPDX-License-Identifier: Apache-2.0
// A part of another page: what a notebook shows.
#pragma once

#include <string>
#include <vector>

#include "libmx/report/document.hpp"

namespace mx::report {

/// The sections as one HTML element: tables, words and figures, with the style of figures and
/// without a script or a link. Ids of figures begin with `id`, for several on one page.
std::string fragment_of(const std::vector<section>& sections, const std::string& id);

}  // namespace mx::report
