// SPDX-License-Identifier: Apache-2.0
// A strict parser for the one Python literal that .npy headers hold.
#include <limits>

#include "libmx/io/npy_header.hpp"

namespace mx::io {
namespace {

constexpr int depth_limit = 16;
constexpr std::size_t axes_limit = 64;

class literal_parser {
  public:
    explicit literal_parser(std::string_view text) : text_(text) {}

    bool dictionary(npy_dictionary& out) {
        bool has_descr = false, has_order = false, has_shape = false;
        if (!take('{')) return wrong("'{' is missing");
        while (!take('}')) {
            std::string key;
            if (!string(key)) return wrong("a key in quotes is missing");
            if (!take(':')) return wrong("':' is missing");
            bool* seen = key == "descr"           ? &has_descr
                         : key == "fortran_order" ? &has_order
                         : key == "shape"         ? &has_shape
                                                  : nullptr;
            if (seen == nullptr) return wrong("unknown key '" + key + "'");
            if (*seen) return wrong("key '" + key + "' comes twice");
            *seen = true;
            const bool fine = seen == &has_descr   ? descr(out.descr)
                              : seen == &has_order ? truth(out.fortran)
                                                   : extents(out.shape);
            if (!fine) return wrong("the value of '" + key + "' is not what it should be");
            if (!take(',') && peek() != '}') return wrong("',' or '}' is missing");
        }
        if (!has_descr || !has_order || !has_shape) {
            return wrong("descr, fortran_order or shape is missing");
        }
        skip_blanks();
        return at_ == text_.size() || wrong("something follows the dictionary");
    }

    const std::string& problem() const { return problem_; }
    std::size_t at() const { return at_; }

  private:
    void skip_blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' ||
                                      text_[at_] == '\t' || text_[at_] == '\r')) {
            ++at_;
        }
    }
    char peek() {
        skip_blanks();
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool take(char c) {
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    bool wrong(const std::string& message) {
        if (problem_.empty()) problem_ = message;
        return false;
    }
    bool word(std::string_view expected) {
        skip_blanks();
        if (!text_.substr(at_).starts_with(expected)) return false;
        at_ += expected.size();
        return true;
    }

    // Backslashes only occur in field names of structured types, where the text is not used.
    bool string(std::string& out) {
        const char quote = peek();
        if (quote != '\'' && quote != '"') return false;
        for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
            if (text_[at_] == '\\') ++at_;
            if (at_ < text_.size()) out += text_[at_];
        }
        return take_quote(quote);
    }
    bool take_quote(char quote) {
        if (at_ >= text_.size() || text_[at_] != quote) return wrong("a string does not end");
        ++at_;
        return true;
    }

    bool natural(std::uint64_t& out) {
        skip_blanks();
        const std::size_t begin = at_;
        out = 0;
        for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
            const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
            if (out > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) {
                return wrong("a number does not fit into 64 bits");
            }
            out = out * 10 + digit;
        }
        if (at_ == begin) return false;
        if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers so
        return true;
    }

    bool truth(bool& out) {
        out = word("True");
        return out || word("False");
    }

    bool extents(tensor::shape& out) {
        if (!take('(')) return false;
        bool comma = true;
        while (!take(')')) {
            std::uint64_t extent = 0;
            if (!comma || !natural(extent)) return false;
            if (out.size() == axes_limit) return wrong("shape has more than 64 axes");
            out.push_back(extent);
            comma = take(',');
        }
        // (5) is a number in parentheses, (5,) a tuple.
        return out.size() != 1 || comma;
    }

    bool descr(std::string& out) {
        if (peek() == '\'' || peek() == '"') return string(out);
        return (peek() == '[' || peek() == '(') && skip_value(0);
    }

    // Strings, numbers, tuples and lists of structured types, checked but not kept.
    bool skip_value(int depth) {
        if (depth == depth_limit) return wrong("descr is nested too deep");
        std::string ignored;
        std::uint64_t number = 0;
        const char c = peek();
        if (c == '\'' || c == '"') return string(ignored);
        if (c >= '0' && c <= '9') return natural(number);
        if (c != '[' && c != '(') return false;
        ++at_;
        const char end = c == '[' ? ']' : ')';
        bool comma = true;
        while (!take(end)) {
            if (!comma || !skip_value(depth + 1)) return false;
            comma = take(',');
        }
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::string problem_;
};

}  // namespace

std::optional<npy_dictionary> parse_npy_dictionary(std::string_view text, std::string& problem,
                                                   std::size_t& at) {
    npy_dictionary out;
    literal_parser parser(text);
    if (parser.dictionary(out)) return out;
    problem = parser.problem();
    at = parser.at();
    return std::nullopt;
}

}  // namespace mx::io
