// SPDX-License-Identifier: Apache-2.0
// Text and bytes on their way into a page. Whatever a file can have named goes through here.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

namespace mx::report::html {

/// `text` as character data or as the value of a quoted attribute: characters that act and invalid
/// UTF-8 as \xNN, as on a terminal, and markup escaped.
std::string shown(const std::string& text);

/// shown() with places to break a line behind dots, slashes, colons, commas, equals signs and
/// underscores.
std::string shown_name(const std::string& text);
/// shown() of words, in which a recipe may break behind a comma.
std::string shown_words(const std::string& text);

/// shown() with '\n' as a line break.
std::string shown_title(const std::string& title);

/// `text` as a JSON string that may stand inside <script>.
std::string quoted(const std::string& text);

/// The ids of one page: [a-z0-9-], each handed out once.
class anchors {
  public:
    /// `wish` where it is free, else with a number behind it.
    std::string claim(std::string_view wish);

  private:
    std::set<std::string> taken_;
};

/// `bytes` in base64 with padding.
std::string base64(std::string_view bytes);

/// `values` as little-endian float32 in base64. Values that are all the same bits stand once.
std::string base64_floats(std::span<const float> values);

/// "sha256-..." of a Content-Security-Policy, from the digest in hexadecimal.
std::string policy_hash(std::string_view hexadecimal);

}  // namespace mx::report::html
