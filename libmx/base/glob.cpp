// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/glob.hpp"

#include <cstddef>

namespace mx::base {
namespace {

// Matches one character against the pattern element at `p`; moves `p` behind the element.
bool match_one(std::string_view pattern, std::size_t& p, char c) {
    const char first = pattern[p++];
    if (first == '?') return true;
    if (first == '\\' && p < pattern.size()) return pattern[p++] == c;
    if (first != '[') return first == c;
    std::size_t at = p;
    const bool negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
    if (negated) ++at;
    bool hit = false;
    bool any = false;
    while (at < pattern.size() && (pattern[at] != ']' || !any)) {
        any = true;
        const char low = pattern[at++];
        char high = low;
        if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
            high = pattern[at + 1];
            at += 2;
        }
        hit = hit || (low <= c && c <= high);
    }
    if (at >= pattern.size()) return c == '[';  // no closing bracket: an ordinary character
    p = at + 1;
    return hit != negated;
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
    std::size_t p = 0;
    std::size_t t = 0;
    // Where to resume after the last '*': one more character is given to it each time.
    std::size_t star = std::string_view::npos;
    std::size_t star_text = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            star_text = t;
            continue;
        }
        if (p < pattern.size() && match_one(pattern, p, text[t])) {
            ++t;
            continue;
        }
        if (star == std::string_view::npos) return false;
        p = star + 1;
        t = ++star_text;
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

std::string exact_glob(std::string_view text) {
    std::string glob;
    for (const char c : text) {
        if (std::string_view("*?[\\").find(c) != std::string_view::npos) glob += '\\';
        glob += c;
    }
    return glob;
}

}  // namespace mx::base
