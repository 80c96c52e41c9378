// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace mx::base {

/// Whether `pattern` matches the whole of `text`: * any run, ? one character, [abc], [a-z], [!a]
/// sets, \x the character x. Work is bounded by the product of the lengths.
bool glob_match(std::string_view pattern, std::string_view text);

/// The pattern that matches `text` and nothing else.
std::string exact_glob(std::string_view text);

}  // namespace mx::base
