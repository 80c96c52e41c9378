// SPDX-License-Identifier: Apache-2.0
// A minimal XML parser to check the markup of figures; reports what is not well formed.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace mx::report {

struct element {
    std::string name;
    std::map<std::string, std::string> attributes;  ///< values with their references left in
    std::string text;                               ///< directly inside, references left in
};

struct parsed_markup {
    std::string problem;  ///< empty when the markup is well formed
    std::vector<element> elements;

    std::vector<const element*> all(const std::string& name) const {
        std::vector<const element*> found;
        for (const element& e : elements) {
            if (e.name == name) found.push_back(&e);
        }
        return found;
    }
};

class markup_parser {
  public:
    explicit markup_parser(const std::string& text) : text_(text) {}

    parsed_markup parse() {
        std::vector<std::size_t> open;
        bool closed_root = false;
        while (at_ < text_.size() && out_.problem.empty()) {
            if (text_[at_] != '<') {
                const std::size_t end = std::min(text_.find('<', at_), text_.size());
                const std::string piece = text_.substr(at_, end - at_);
                check(piece);
                const bool blank = piece.find_first_not_of(" \n") == std::string::npos;
                if (open.empty() && !blank) fail("text outside the root");
                if (!open.empty()) out_.elements[open.back()].text += piece;
                at_ = end;
            } else if (text_.compare(at_, 2, "</") == 0) {
                const std::size_t end = text_.find('>', at_);
                const std::string name = text_.substr(at_ + 2, end - at_ - 2);
                if (open.empty() || out_.elements[open.back()].name != name) {
                    fail("</" + name + "> closes something else");
                    break;
                }
                open.pop_back();
                closed_root = open.empty();
                at_ = end + 1;
            } else {
                if (closed_root) fail("a second root");
                if (tag()) open.push_back(out_.elements.size() - 1);
                if (open.empty()) closed_root = true;
            }
        }
        if (!open.empty()) fail("not closed: " + out_.elements[open.back()].name);
        return out_;
    }

  private:
    void fail(const std::string& what) {
        if (out_.problem.empty()) out_.problem = what;
    }

    std::string word() {
        const std::size_t from = at_;
        const auto part = [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
        };
        while (at_ < text_.size() && part(text_[at_])) ++at_;
        return text_.substr(from, at_ - from);
    }

    // A start tag; whether its element stays open.
    bool tag() {
        ++at_;
        element e;
        e.name = word();
        if (e.name.empty()) fail("a tag without a name");
        while (out_.problem.empty()) {
            if (text_.compare(at_, 2, "/>") == 0 || text_.compare(at_, 1, ">") == 0) {
                const bool stays = text_[at_] == '>';
                at_ += stays ? 1 : 2;
                out_.elements.push_back(e);
                return stays;
            }
            if (text_.compare(at_, 1, " ") != 0) fail("no blank before an attribute of " + e.name);
            if (!out_.problem.empty()) break;
            ++at_;
            const std::string key = word();
            if (key.empty() || text_.compare(at_, 2, "=\"") != 0) fail("attribute of " + e.name);
            const std::size_t end = text_.find('"', at_ + 2);
            if (end == std::string::npos) fail("a quote is not closed");
            if (!out_.problem.empty()) break;
            const std::string value = text_.substr(at_ + 2, end - at_ - 2);
            check(value);
            if (value.find('<') != std::string::npos) fail("< in " + key);
            if (!e.attributes.emplace(key, value).second) fail("twice: " + key);
            at_ = end + 1;
        }
        return false;
    }

    // Only references that were meant, and no control characters but line breaks.
    void check(const std::string& piece) {
        for (std::size_t i = 0; i < piece.size(); ++i) {
            const auto byte = static_cast<unsigned char>(piece[i]);
            if ((byte < 0x20 && byte != '\n') || byte == 0x7f) fail("a control character");
            if (piece[i] != '&') continue;
            const std::string name = piece.substr(i, piece.find(';', i) - i + 1);
            const std::vector<std::string> known{"&amp;", "&lt;", "&gt;",  "&quot;",
                                                 "&#39;", "&#9;", "&#10;", "&#13;"};
            bool found = false;
            for (const std::string& k : known) found = found || k == name;
            if (!found) fail("reference " + name);
        }
    }

    const std::string& text_;
    std::size_t at_ = 0;
    parsed_markup out_;
};

inline parsed_markup parse_markup(const std::string& text) { return markup_parser(text).parse(); }

}  // namespace mx::report
