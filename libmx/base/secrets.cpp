// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/secrets.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <mutex>
#include <string_view>
#include <utility>

namespace mx::base {
namespace {

constexpr std::size_t least_secret = 8;
constexpr std::string_view hidden_secret = "(secret)";

std::mutex secrets_guard;
std::vector<std::string>& secrets() {
    static std::vector<std::string> words;
    return words;
}
// Text is written often, and few runs have secrets.
std::atomic<bool> any_secret{false};

}  // namespace

std::string without_words(std::string text, const std::vector<std::string>& words) {
    const auto same = [](char a, char b) {
        return std::tolower(static_cast<unsigned char>(a)) ==
               std::tolower(static_cast<unsigned char>(b));
    };
    for (const std::string& word : words) {
        if (word.size() < least_secret) continue;
        for (auto from = text.begin();;) {
            const auto at = std::search(from, text.end(), word.begin(), word.end(), same);
            if (at == text.end()) break;
            const auto offset = at - text.begin();
            text.replace(static_cast<std::size_t>(offset), word.size(), hidden_secret);
            from = text.begin() + offset + static_cast<std::ptrdiff_t>(hidden_secret.size());
        }
    }
    return text;
}

void hide_secret(const std::string& word) {
    const std::lock_guard lock(secrets_guard);
    if (word.size() < least_secret || std::ranges::find(secrets(), word) != secrets().end()) return;
    secrets().push_back(word);
    any_secret = true;
}

std::string without_secrets(std::string text) {
    if (!any_secret) return text;
    const std::lock_guard lock(secrets_guard);
    return without_words(std::move(text), secrets());
}

}  // namespace mx::base
