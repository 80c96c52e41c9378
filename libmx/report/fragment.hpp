// SPDX-License-Identifier: Apache-2.0
// A document as part of another page, for notebooks.
#pragma once

#include <string>
#include <vector>

#include "libmx/report/document.hpp"

namespace mx::report {

/// The sections as one HTML element: tables, text and figures, with the style sheet of figures and
/// without scripts or links. Ids of figures start with `id`, so that a page can contain several
/// fragments.
std::string fragment_of(const std::vector<section>& sections, const std::string& id);

}  // namespace mx::report
