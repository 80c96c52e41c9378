// SPDX-License-Identifier: Apache-2.0
// Text measured in terminal columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mx::report {

/// Columns of printable UTF-8, counting a code point as one.
std::size_t columns_of(std::string_view text);

/// `text` padded with blanks on the left or on the right to `width` columns.
std::string padded(const std::string& text, std::size_t width, bool right);

/// The columns that `shortened` leaves before the ".." by default: the end of a name (which weight
/// of the layer) says more than its beginning.
constexpr std::size_t usual_head(std::size_t width) { return width < 2 ? 0 : (width - 2) * 2 / 5; }

/// `text` in at most `width` columns: ".." replaces what is between the first `head` columns and
/// the last ones, so that the beginning and the end of a tensor's name remain.
std::string shortened(const std::string& text, std::size_t width, std::size_t head);
inline std::string shortened(const std::string& text, std::size_t width) {
    return shortened(text, width, usual_head(width));
}

/// The names of one column as `shortened` shows them, all with the head that keeps the most of them
/// distinct; those that would still be shown alike keep the letters in which they differ from
/// others ("model/l..mul/..Op:0") if these fit.
std::vector<std::string> told_apart(const std::vector<std::string>& names, std::size_t width);

/// `text` broken at blanks into lines of at most `width` columns; longer words are not broken.
std::vector<std::string> wrapped(const std::string& text, std::size_t width);

/// `text` with a blank after some colons and commas of words longer than `width` columns, so that
/// long recipes can be wrapped (mx accepts recipes with these blanks); in words without a colon
/// also after slashes.
std::string breakable(const std::string& text, std::size_t width);

}  // namespace mx::report
