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

/// `text` in at most `width` columns: ".." replaces the middle, so that the beginning and the end
/// of a tensor's name remain.
std::string shortened(const std::string& text, std::size_t width);

/// `text` broken at blanks into lines of at most `width` columns; longer words are not broken.
std::vector<std::string> wrapped(const std::string& text, std::size_t width);

/// `text` with a blank after some colons and commas of words longer than `width` columns, so that
/// long recipes can be wrapped (mx accepts recipes with these blanks); in words without a colon
/// also after slashes.
std::string breakable(const std::string& text, std::size_t width);

}  // namespace mx::report
