// SPDX-License-Identifier: Apache-2.0
// Words that no output may hold: a server that was sent a token may repeat it in a file.
#pragma once

#include <string>
#include <vector>

namespace mx::base {

/// `text` with "(secret)" in place of each of `words`, in capitals or not. Words of fewer than
/// eight bytes are ignored: they occur by chance.
std::string without_words(std::string text, const std::vector<std::string>& words);

/// From now on, without_secrets() replaces this word, too. Thread-safe.
void hide_secret(const std::string& word);
std::string without_secrets(std::string text);

}  // namespace mx::base
