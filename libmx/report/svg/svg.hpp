// SPDX-License-Identifier: Apache-2.0
// Figures as static SVG for a page: no script, no style attribute, no reference that leaves the
// element. The same figure gives the same bytes.
#pragma once

#include <string>
#include <string_view>

#include "libmx/report/figure.hpp"

namespace mx::report::svg {

/// One <svg class="plot"> element, 720 units wide, that takes its colours from `style_sheet`. It
/// holds neither the title nor the caption as visible text, which are the page's; both are its
/// accessible name and description. Ids begin with the figure's id and two dashes. Every mark has
/// a <title> child that says its value. Values that are not finite count as undefined.
std::string element_of(const figure& f);

/// The style sheet of all figures of a page. Colours are custom properties: light, dark when the
/// reader prefers it or the root element says data-theme="dark" (or "light"), and light on paper.
/// A block around a figure should scroll sideways (overflow-x: auto): on narrow screens figures
/// stop shrinking while their text is still legible.
std::string_view style_sheet();

}  // namespace mx::report::svg
