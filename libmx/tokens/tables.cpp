// SPDX-License-Identifier: Apache-2.0
#include "libmx/tokens/tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libmx/base/status.hpp"
#include "libmx/base/text_tables.hpp"

namespace mx::tokens {
namespace {

// The code point of each byte in spellings: that of Latin-1 where it is visible, for the others
// the next from 256 on.
constexpr std::array<char32_t, 256> byte_characters = [] {
    std::array<char32_t, 256> characters{};
    char32_t next = 256;
    for (char32_t b = 0; b < 256; ++b) {
        const bool visible = (b > 0x20 && b < 0x7f) || (b > 0xa0 && b != 0xad);
        characters[b] = visible ? b : next++;
    }
    return characters;
}();

// The bytes of a token of byte-level BPE; the spelling itself if a character stands for no byte.
std::string bytes_of(const std::string& spelled) {
    std::string bytes;
    for (std::size_t at = 0; at < spelled.size();) {
        const std::size_t length = base::utf8_length(spelled, at);
        if (length == 0) return spelled;
        const auto* const found =
            std::ranges::find(byte_characters, base::code_point(spelled, at, length));
        if (found == byte_characters.end()) return spelled;
        bytes += static_cast<char>(found - byte_characters.begin());
        at += length;
    }
    return bytes;
}

std::string spelling_of(std::uint32_t byte, bool byte_level) {
    if (!byte_level) return fmt::format("<0x{:02X}>", byte);
    const char32_t c = byte_characters[byte];
    if (c < 0x80) return {static_cast<char>(c)};
    return {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
}

}  // namespace

void refuse_tokenizer(const std::string& path, const std::string& what) {
    throw tokenizer_error(base::error_kind::input, what, {path, {}, {}});
}

std::string with_spaces(const std::string& text) {
    std::string out;
    std::size_t begin = 0;
    for (std::size_t at; (at = text.find(escaped_space, begin)) != std::string::npos;) {
        out.append(text, begin, at - begin) += ' ';
        begin = at + escaped_space.size();
    }
    return out.append(text, begin);
}

void set_tokens(tables& t, const std::string& path, const std::vector<spelled_merge>& merges) {
    const std::vector<std::string>& spelled = t.spelled;
    base::view_map<std::uint32_t> ids;
    for (std::uint32_t id = 0; id < spelled.size(); ++id) {
        if (!spelled[id].empty() && !ids.emplace(spelled[id], id).second) {
            refuse_tokenizer(path, fmt::format("two tokens are '{}'", spelled[id]));
        }
    }
    const auto id_of = [&](std::string_view text) {
        const auto found = ids.find(text);
        return found == ids.end() ? no_token : found->second;
    };
    for (std::uint32_t b = 0; b < 256; ++b) t.bytes[b] = id_of(spelling_of(b, t.byte_level));
    for (const spelled_merge& m : merges) {
        const std::string_view text = m.text;
        const merge_rule rule{id_of(text.substr(0, m.left)), id_of(text.substr(m.left)),
                              static_cast<std::uint32_t>(t.merges.size()), id_of(text)};
        if (std::max({rule.left, rule.right, rule.merged}) == no_token) {
            refuse_tokenizer(path,
                             fmt::format("merge {} of '{}' and '{}' is not of tokens", rule.rank,
                                         text.substr(0, m.left), text.substr(m.left)));
        }
        t.merges.push_back(rule);
    }
    for (std::uint32_t id = 0; id < spelled.size(); ++id) {
        t.pieces.push_back(!t.in_words[id] ? spelled[id]
                           : t.byte_level  ? bytes_of(spelled[id])
                                           : with_spaces(spelled[id]));
    }
    for (std::uint32_t b = 0; b < 256 && !t.byte_level; ++b) {
        if (t.bytes[b] == no_token) continue;
        t.pieces[t.bytes[b]] = static_cast<char>(b);
        t.in_words[t.bytes[b]] = false;
    }
}

}  // namespace mx::tokens
