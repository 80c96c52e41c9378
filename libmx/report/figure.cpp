// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/figure.hpp"

namespace mx::report {

plot::plot() = default;
plot::plot(const plot&) = default;
plot::plot(plot&&) noexcept = default;
plot& plot::operator=(const plot&) = default;
plot& plot::operator=(plot&&) noexcept = default;
plot::~plot() = default;

}  // namespace mx::report
