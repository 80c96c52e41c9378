// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/text.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace mx::report {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The byte position of code point `count`.
std::size_t byte_of(std::string_view text, std::size_t count) {
    std::size_t at = 0;
    while (at < text.size()) {
        if (!continues(text[at])) {
            if (count == 0) break;
            --count;
        }
        ++at;
    }
    return at;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return !continues(c); }));
}

std::string padded(const std::string& text, std::size_t width, bool right) {
    const std::size_t have = columns_of(text);
    const std::string blanks(have < width ? width - have : 0, ' ');
    return right ? blanks + text : text + blanks;
}

std::string shortened(const std::string& text, std::size_t width, std::size_t head) {
    const std::size_t have = columns_of(text);
    if (have <= width || width < 5) return text;
    const std::size_t tail = width - 2 - head;
    return text.substr(0, byte_of(text, head)) + ".." + text.substr(byte_of(text, have - tail));
}

std::size_t head_to_tell(std::span<const std::string> all, std::size_t width) {
    // Every so many of a long list, so that a table of many tensors costs no more time.
    constexpr std::size_t compared = 4096;
    const std::size_t stride = all.size() / compared + 1;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < all.size(); i += stride) names.push_back(all[i]);
    const auto distinct = [&](std::size_t head) {
        std::vector<std::string> cut;
        for (const std::string& n : names) cut.push_back(shortened(n, width, head));
        std::ranges::sort(cut);
        return static_cast<std::size_t>(std::unique(cut.begin(), cut.end()) - cut.begin());
    };
    std::vector<std::string> whole = names;
    std::ranges::sort(whole);
    whole.erase(std::unique(whole.begin(), whole.end()), whole.end());
    const std::size_t usual = usual_head(width);
    std::size_t best = usual, most = distinct(usual);
    for (std::size_t step = 1; most < whole.size() && step + 2 <= width; ++step) {
        for (const std::size_t head : {usual + step, usual - step}) {
            if (head > width - 2) continue;  // also below 0, which wraps
            if (const std::size_t n = distinct(head); n > most)
                std::tie(best, most) = std::pair(head, n);
        }
    }
    return best;
}

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
    std::vector<std::string> lines;
    std::string line;
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        const std::string word = text.substr(at, end - at);
        if (!line.empty() && columns_of(line) + 1 + columns_of(word) > width) {
            lines.push_back(line);
            line.clear();
        }
        if (!word.empty()) line += (line.empty() ? "" : " ") + word;
        at = end + 1;
    }
    if (!line.empty() || lines.empty()) lines.push_back(line);
    return lines;
}

std::string breakable(const std::string& text, std::size_t width) {
    std::string out;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find(' ', begin), text.size());
        const std::string word = text.substr(begin, end - begin);
        const bool long_word = columns_of(word) > width;
        // Of recipes, which may name files, mx accepts those with blanks after colons and commas.
        const char* const marks = word.find(':') == std::string::npos ? ",/" : ",:";
        std::size_t line = 0;
        for (std::size_t at = begin; at < end;) {
            const std::size_t mark = text.find_first_of(marks, at);
            const std::size_t stop = mark < end ? mark + 1 : end;
            const std::size_t piece = columns_of(text.substr(at, stop - at));
            if (long_word && line > 0 && line + piece > width) {
                out += ' ';
                line = 0;
            }
            out += text.substr(at, stop - at);
            line += piece;
            at = stop;
        }
        if (end < text.size()) out += ' ';
        begin = end + 1;
    }
    return out;
}

}  // namespace mx::report
