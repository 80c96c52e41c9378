// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/text.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
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

using letters = std::vector<std::string_view>;  // a column each

letters letters_of(std::string_view text) {
    letters all;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at + 1;
        while (end < text.size() && continues(text[end])) ++end;
        all.push_back(text.substr(at, end - at));
        at = end;
    }
    return all;
}

// For each name, the columns in which it differs from another one that agrees with it before.
std::map<std::string_view, std::vector<std::size_t>> branches_of(
    const std::vector<std::string>& names) {
    std::map<std::string_view, std::vector<std::size_t>> found;
    for (const std::string& n : names) found[n];
    const auto sweep = [](auto begin, auto end) {
        std::vector<std::size_t> agreeing;  // with the names before, least first
        letters before;
        for (auto i = begin; i != end; ++i) {
            letters now = letters_of(i->first);
            const auto length =
                static_cast<std::size_t>(std::ranges::mismatch(before, now).in2 - now.begin());
            while (!agreeing.empty() && agreeing.back() >= length) agreeing.pop_back();
            if (i != begin) agreeing.push_back(length);
            i->second.insert(i->second.end(), agreeing.begin(), agreeing.end());
            before = std::move(now);
        }
    };
    sweep(found.begin(), found.end());
    sweep(found.rbegin(), found.rend());
    return found;
}

bool separates(std::string_view letter) {
    return letter.size() == 1 && std::string_view("./_:-").find(letter) != std::string_view::npos;
}

// The name in at most `width` columns, with these columns, the words that they begin, its end and
// as much of its beginning as fits; "" if these columns alone take more.
std::string elided(const letters& name, const std::vector<std::size_t>& columns,
                   std::size_t width) {
    std::vector<bool> kept(name.size());
    const auto fits = [&] {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < kept.size(); ++i) {
            sum += kept[i] ? 1 : i == 0 || kept[i - 1] ? 2 : 0;
        }
        return sum <= width;
    };
    std::vector<std::size_t> order;
    for (const std::size_t c : columns) {
        const std::size_t last = std::min(c, name.size() - 1);  // of a name that another continues
        kept[last] = true;
        for (std::size_t i = last; i < name.size() && !separates(name[i]); ++i) order.push_back(i);
    }
    if (!fits()) return {};
    std::ranges::sort(order, std::greater());
    for (std::size_t i = name.size(); i-- > 0 && !separates(name[i]);) order.push_back(i);
    for (std::size_t i = 0; i < name.size(); ++i) order.push_back(i);
    for (const std::size_t i : order) {
        const bool was = kept[i];
        kept[i] = true;
        if (!fits()) kept[i] = was;
    }
    std::string text;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        if (kept[i]) {
            text += name[i];
        } else if (i == 0 || kept[i - 1]) {
            text += "..";
        }
    }
    return text;
}

// The head, closest to the usual one, with which the most of `all` stay distinct in `width`
// columns; of more than 4,096 names, by a sample of them.
std::size_t head_to_tell(const std::vector<std::string>& all, std::size_t width) {
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

std::vector<std::string> told_apart(const std::vector<std::string>& names, std::size_t width) {
    const std::size_t head = head_to_tell(names, width);
    std::vector<std::string> shown;
    std::map<std::string, std::set<std::string_view>> behind;  // a shown text
    for (const std::string& n : names) {
        shown.push_back(shortened(n, width, head));
        behind[shown.back()].insert(n);
    }
    if (std::ranges::all_of(behind, [](const auto& one) { return one.second.size() == 1; })) {
        return shown;
    }
    const std::map<std::string_view, std::vector<std::size_t>> branches = branches_of(names);
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (behind.at(shown[i]).size() == 1) continue;
        std::string cut = elided(letters_of(names[i]), branches.at(names[i]), width);
        if (!cut.empty()) shown[i] = std::move(cut);
    }
    return shown;
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
