// SPDX-License-Identifier: Apache-2.0
// Numbers as shown in figures: minus signs, powers of ten, thousands, percent.
#pragma once

#include <string>
#include <string_view>

#include "libmx/report/figure.hpp"

namespace mx::report::svg {

/// `value` with `digits` significant digits and neither unit nor percent sign: "1,234", "-0.05"
/// (with U+2212) or "1.2" x 10 to a power in superscript below 1e-4 and from 1e6 on. Trailing
/// zeros stay where digits were rounded away.
std::string number_text(double value, int digits);
/// The same with a fixed number of decimals.
std::string fixed_text(double value, int decimals);
/// 10 to `exponent`, in superscript.
std::string power_text(int exponent);

/// The double nearest to a number in ASCII, independent of the locale.
double number_of(std::string_view text);

/// A value of `a` as in the cells of a figure: shares in percent, without the unit.
std::string short_text(const axis& a, double value, int digits = 3);
/// A value of `a` for tooltips: four digits, with its unit.
std::string value_text(const axis& a, double value);
/// The title of `a` with its unit.
std::string title_text(const axis& a);

}  // namespace mx::report::svg
