// SPDX-License-Identifier: Apache-2.0
// The tables of `mx formats` and `mx rules`, which docs/reference prints as well.
#pragma once

#include "libmx/report/document.hpp"

namespace mx::app {

report::document formats_document();
report::document rules_document();

}  // namespace mx::app
