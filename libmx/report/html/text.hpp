// SPDX-License-Identifier: Apache-2.0
// Escapes text and bytes for a page. All text from files must pass through here.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

namespace mx::report::html {

/// `text` as character data or as the value of a quoted attribute: control characters and invalid
/// UTF-8 become \xNN, as on a terminal, and markup is escaped.
std::string shown(const std::string& text);

/// shown() with line break opportunities after dots, slashes, colons, commas, equals signs and
/// underscores.
std::string shown_name(const std::string& text);
/// shown() of text in which a recipe may break after a comma.
std::string shown_words(const std::string& text);

/// shown() with '\n' converted to a line break.
std::string shown_title(const std::string& title);

/// `text` as a JSON string that is safe inside <script>.
std::string quoted(const std::string& text);

/// The ids of one page: [a-z0-9-], each used once.
class anchors {
  public:
    /// Returns `wish` if it is unused, else `wish` with a number appended.
    std::string claim(std::string_view wish);

  private:
    std::set<std::string> taken_;
};

/// `bytes` in base64 with padding.
std::string base64(std::string_view bytes);

/// `values` as little-endian float32 in base64. If all values have the same bits, one is stored.
std::string base64_floats(std::span<const float> values);

/// "sha256-..." of a Content-Security-Policy, from the digest in hexadecimal.
std::string policy_hash(std::string_view hexadecimal);

}  // namespace mx::report::html
