// SPDX-License-Identifier: Apache-2.0
// What byte-level BPE needs of Unicode: PCRE2 divides text by patterns, utf8proc normalizes it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mx::tokens {

/// Divides text by patterns, one after the other.
class splitter {
  public:
    /// `patterns` are of known_patterns (pre_tokenizers.hpp). Throws base::error (unavailable) in a
    /// build without PCRE2, unless there is no pattern.
    explicit splitter(const std::vector<std::string_view>& patterns);
    ~splitter();

    /// The parts of `text`, which is UTF-8, in order: for each pattern, what it matches and what is
    /// between. Together they are the text.
    std::vector<std::string_view> parts(std::string_view text) const;

  private:
    struct pattern;
    std::vector<std::unique_ptr<pattern>> patterns_;
};

/// `text`, which is UTF-8, in Unicode's normalization form C. Throws base::error (unavailable) in a
/// build without utf8proc.
std::string to_nfc(const std::string& text);

}  // namespace mx::tokens
