// SPDX-License-Identifier: Apache-2.0
// How much room text takes. There is no font here to ask, so these are estimates on the wide side
// of the common sans-serif fonts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mx::report::svg {

inline constexpr double font_size = 12;   ///< of labels, in units of the view box
inline constexpr double small_size = 11;  ///< of values in cells and of zones

/// The width of a line of `text`.
double width_of(std::string_view text, double size = font_size);
/// The widest of `texts`; 0 without any.
double widest(const std::vector<std::string>& texts, double size = font_size);

/// `text` when it fits in `width`, otherwise with its middle left out.
std::string fitted(const std::string& text, double width, double size = font_size);

/// `text` in lines of at most `width`, broken behind blanks and : / , _ + -; longer pieces are
/// left whole.
std::vector<std::string> broken(const std::string& text, double width, double size = font_size);

}  // namespace mx::report::svg
