// SPDX-License-Identifier: Apache-2.0
// Figures as static SVG for a page: no script, no style attribute, no reference that leaves the
// element. The same figure gives the same bytes.
#pragma once

#include <string>
#include <string_view>

#include "libmx/report/figure.hpp"

namespace mx::report::svg {

/// One <svg class="plot"> element, 460 units wide ("plot wide": 940), with colours from
/// `style_sheet`. The page shows title, caption and legend; in the element, title and caption are
/// only the accessible name and description. Ids start with the figure's id and two dashes. Every
/// mark has a <title> child with its value. Non-finite values count as undefined.
std::string element_of(const figure& f);

/// The legend of the figure: a <ul class="legend"> of small samples and names, empty if there is
/// nothing to distinguish. It must be outside the scrolling block and on the same page as the
/// figure, because it uses the figure's patterns.
std::string legend_of(const figure& f);

/// The style sheet of all figures of a page. Colours are custom properties: light; dark if the
/// reader prefers it or the root element has data-theme="dark" (or "light"); and light in print. A
/// block around a figure should scroll horizontally (overflow-x: auto): on narrow screens, wide
/// figures stop shrinking while their text is still legible.
std::string_view style_sheet();

}  // namespace mx::report::svg
