// SPDX-License-Identifier: Apache-2.0
// Figures as static SVG for a page: no script, no style attribute, no reference that leaves the
// element. The same figure gives the same bytes.
#pragma once

#include <string>
#include <string_view>

#include "libmx/report/figure.hpp"

namespace mx::report::svg {

/// One <svg class="plot"> element, 460 units wide ("plot wide": 940), that takes its colours from
/// `style_sheet`. It holds neither the title, the caption nor the legend as visible text, which are
/// the page's; title and caption are its accessible name and description. Ids begin with the
/// figure's id and two dashes. Every mark has a <title> child that says its value. Values that are
/// not finite count as undefined.
std::string element_of(const figure& f);

/// What the signs of the figure mean: a <ul class="legend"> of small samples and names, empty where
/// there is nothing to tell apart. It stands outside the block that scrolls, and on the same page
/// as the figure, whose patterns it uses.
std::string legend_of(const figure& f);

/// The style sheet of all figures of a page. Colours are custom properties: light, dark when the
/// reader prefers it or the root element says data-theme="dark" (or "light"), and light on paper.
/// A block around a figure should scroll sideways (overflow-x: auto): on narrow screens wide
/// figures stop shrinking while their text is still legible.
std::string_view style_sheet();

}  // namespace mx::report::svg
