// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding: of neighbours, those that are first in the order of merges become one token,
// until no pair has a merge.
#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/base/text_tables.hpp"
#include "libmx/tokens/tables.hpp"

namespace mx::tokens {
namespace {

// SentencePiece has no words, so that symbols of all of the text are in memory.
constexpr std::size_t most_text = 16 << 20;
constexpr std::size_t longest_added = 256;  // each is compared with the text at each place

[[noreturn]] void refuse_text(const std::string& message) {
    throw base::error(base::error_kind::input, "the text " + message);
}

// The first byte that is not UTF-8; the length of `text` if there is none.
std::size_t utf8_end(const std::string& text) {
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t length = base::utf8_length(text, at);
        if (length == 0) break;
        at += length;
    }
    return at;
}

// Finds the longest added token at a place.
class added_tokens {
  public:
    explicit added_tokens(std::vector<added_token> tokens) : tokens_(std::move(tokens)) {
        // Text of another encoding could end inside a character.
        std::erase_if(tokens_, [](const added_token& t) {
            return t.text.empty() || utf8_end(t.text) != t.text.size();
        });
        std::ranges::stable_sort(tokens_, {}, &added_token::text);
        for (const added_token& t : tokens_) {
            begins_[static_cast<unsigned char>(t.text[0])] = true;
            if (t.text.size() <= longest_added) continue;
            throw base::error(base::error_kind::input,
                              fmt::format("the tokenizer has an added token of {} bytes, more than "
                                          "{}; give the ids of the text with --tokens ids.npy",
                                          t.text.size(), longest_added));
        }
    }

    const added_token* longest(std::string_view text) const {
        if (!begins_[static_cast<unsigned char>(text[0])]) return nullptr;
        const added_token* found = nullptr;
        auto first = tokens_.begin(), last = tokens_.end();
        // Of those that begin with the first `n` bytes of the text, the shortest is the first.
        for (std::size_t n = 0; first != last; ++n) {
            if (first->text.size() == n) found = &*first;
            while (first != last && first->text.size() == n) ++first;
            if (n == text.size()) break;
            const auto nth = [n](const added_token& t) { return t.text[n]; };
            first = std::ranges::lower_bound(first, last, text[n], by_byte, nth);
            last = std::ranges::upper_bound(first, last, text[n], by_byte, nth);
        }
        return found;
    }

  private:
    // In the order of std::string.
    static bool by_byte(char a, char b) {
        return static_cast<unsigned char>(a) < static_cast<unsigned char>(b);
    }

    std::vector<added_token> tokens_;
    std::array<bool, 256> begins_{};
};

// A part of a word on the way to a token; merged ones remain with a length of 0.
struct symbol {
    std::uint32_t begin, length;
    std::uint32_t id;
    std::uint32_t before, after;  // neighbours, no_token for none
};

struct candidate {
    double order;  // the lowest is merged first, of equals the leftmost
    std::uint32_t left;
    std::uint32_t length;  // of both; another one if a neighbour has changed since
    std::uint32_t merged;

    bool operator<(const candidate& other) const {
        return std::tie(order, left) > std::tie(other.order, other.left);
    }
};

class bpe_tokenizer final : public tokenizer {
  public:
    explicit bpe_tokenizer(tables t)
        : t_(std::move(t)), added_(std::move(t_.added)), split_(make_splitter(t_.splits)) {
        std::ranges::sort(t_.merges, {}, pair_of);
        const auto twice = std::ranges::adjacent_find(t_.merges, {}, pair_of);
        if (twice != t_.merges.end()) {
            throw base::error(base::error_kind::input,
                              fmt::format("the tokenizer merges '{}' and '{}' twice",
                                          t_.pieces[twice->left], t_.pieces[twice->right]));
        }
        if (t_.byte_level && !t_.whole_words) return;
        for (std::uint32_t id = 0; id < t_.pieces.size(); ++id) {
            if (t_.in_words[id] && !t_.pieces[id].empty()) words_.emplace(t_.pieces[id], id);
        }
    }

    std::vector<std::uint32_t> encode(std::string_view utf8) const override {
        if (utf8.size() > most_text) {
            refuse_text(fmt::format("has {} bytes, more than {}; use a part of it", utf8.size(),
                                    most_text));
        }
        std::string text(utf8);
        if (const std::size_t end = utf8_end(text); end != text.size()) {
            refuse_text(fmt::format("is not UTF-8 at byte {}; convert it to UTF-8", end));
        }
        if (t_.prepared_first && !text.empty()) text = prepared(std::move(text), true);
        std::vector<std::uint32_t> ids;
        std::size_t begin = 0;
        std::size_t at = 0;
        const auto end_section = [&] {
            if (at != begin) encode_section(text.substr(begin, at - begin), begin == 0, ids);
        };
        while (at < text.size()) {
            const added_token* const token = added_.longest(std::string_view(text).substr(at));
            if (token == nullptr) {
                ++at;
                continue;
            }
            if (!token->unsupported.empty()) {
                refuse_text(
                    fmt::format("contains '{}' at byte {}, an added token with the option "
                                "{}, which mx does not follow; give its ids with --tokens "
                                "ids.npy",
                                token->text, at, token->unsupported));
            }
            end_section();
            ids.push_back(token->id);
            begin = at += token->text.size();
        }
        end_section();
        return ids;
    }

    std::size_t vocabulary() const override { return t_.pieces.size(); }
    std::string piece(std::uint32_t id) const override {
        return id < t_.pieces.size() ? t_.pieces[id] : std::string();
    }
    std::string_view kind() const override { return t_.kind; }
    std::optional<std::uint32_t> bos() const override { return t_.bos; }

  private:
    static std::uint64_t pair_of(const merge_rule& m) {
        return std::uint64_t{m.left} << 32 | m.right;
    }

    // A stretch without added tokens.
    void encode_section(std::string text, bool first, std::vector<std::uint32_t>& ids) const {
        if (!t_.prepared_first) text = prepared(std::move(text), first);
        for (const std::string_view word : split_(text)) encode_word(word, ids);
    }

    // `text`, which is not empty, as it is encoded; `first`: it begins the whole.
    std::string prepared(std::string text, bool first) const {
        if (t_.nfc) text = to_nfc(text);
        if (t_.escaped_spaces) text = with_spaces(text);
        const bool prefixed =
            t_.prefix == space_prefix::always || (t_.prefix == space_prefix::first && first);
        if (prefixed && !(t_.single_prefix && text.front() == ' ')) text.insert(0, 1, ' ');
        return text;
    }

    std::uint32_t word_id(std::string_view text) const {
        const auto found = words_.find(text);
        return found == words_.end() ? no_token : found->second;
    }

    std::vector<symbol> symbols_of(std::string_view word) const {
        std::vector<symbol> symbols;
        for (std::uint32_t at = 0; at < word.size();) {
            std::uint32_t length = 1;
            const auto continues = [&] {
                return at + length < word.size() &&
                       (static_cast<unsigned char>(word[at + length]) & 0xc0) == 0x80;
            };
            while (!t_.byte_level && continues()) ++length;
            const std::uint32_t id = t_.byte_level ? t_.bytes[static_cast<unsigned char>(word[at])]
                                                   : word_id(word.substr(at, length));
            const auto index = static_cast<std::uint32_t>(symbols.size());
            symbols.push_back({at, length, id, index - 1, index + 1});
            at += length;
        }
        symbols.back().after = no_token;
        return symbols;
    }

    // Adds the merge of a symbol and the one after it, if there is one.
    void consider(std::string_view word, const std::vector<symbol>& symbols, std::uint32_t left,
                  std::priority_queue<candidate>& queue) const {
        if (left == no_token || symbols[left].after == no_token) return;
        const symbol& a = symbols[left];
        const symbol& b = symbols[a.after];
        const std::uint32_t length = a.length + b.length;
        if (!t_.scores.empty()) {
            const std::uint32_t id = word_id(word.substr(a.begin, length));
            if (id != no_token) queue.push({-double{t_.scores[id]}, left, length, id});
            return;
        }
        const std::uint64_t pair = std::uint64_t{a.id} << 32 | b.id;
        const auto rule = std::ranges::lower_bound(t_.merges, pair, {}, pair_of);
        if (rule != t_.merges.end() && pair_of(*rule) == pair) {
            queue.push({double(rule->rank), left, length, rule->merged});
        }
    }

    void encode_word(std::string_view word, std::vector<std::uint32_t>& ids) const {
        if (t_.whole_words) {
            if (const std::uint32_t id = word_id(word); id != no_token) {
                ids.push_back(id);
                return;
            }
        }
        std::vector<symbol> symbols = symbols_of(word);
        std::priority_queue<candidate> queue;
        for (std::uint32_t i = 0; i < symbols.size(); ++i) consider(word, symbols, i, queue);
        while (!queue.empty()) {
            const candidate c = queue.top();
            queue.pop();
            symbol& a = symbols[c.left];
            if (a.length == 0 || a.after == no_token) continue;
            symbol& b = symbols[a.after];
            if (a.length + b.length != c.length) continue;
            a.length = c.length;
            a.id = c.merged;
            a.after = b.after;
            b.length = 0;
            if (a.after != no_token) symbols[a.after].before = c.left;
            consider(word, symbols, a.before, queue);
            consider(word, symbols, c.left, queue);
        }
        for (const symbol& s : symbols) {
            if (s.length == 0) continue;
            if (s.id != no_token) {
                ids.push_back(s.id);
            } else {
                encode_bytes(word.substr(s.begin, s.length), ids);
            }
        }
    }

    void encode_bytes(std::string_view character, std::vector<std::uint32_t>& ids) const {
        for (const char c : character) {
            const auto byte = static_cast<unsigned char>(c);
            if (t_.bytes[byte] == no_token) {
                refuse_text(
                    fmt::format("contains '{}', and the tokenizer has no token for byte "
                                "{:#04x}",
                                character, byte));
            }
            ids.push_back(t_.bytes[byte]);
        }
    }

    tables t_;
    added_tokens added_;
    splitter split_;
    base::view_map<std::uint32_t> words_;  // of t_.pieces
};

}  // namespace

std::unique_ptr<tokenizer> make_bpe_tokenizer(tables t) {
    return std::make_unique<bpe_tokenizer>(std::move(t));
}

}  // namespace mx::tokens
