// SPDX-License-Identifier: Apache-2.0
// What byte-level BPE needs of Unicode: PCRE2 divides text by patterns, utf8proc normalizes it.
#include "libmx/tokens/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "libmx/base/status.hpp"

#if defined(MX_HAS_UNICODE)
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>
#endif

namespace mx::tokens {
namespace {

[[noreturn]] void fail(const std::string& message) {
    throw base::error(base::error_kind::unavailable, message);
}

#if defined(MX_HAS_UNICODE)

// PCRE2's \s contains U+180E, which is no white space since Unicode 6.3.
std::string white_space_of_unicode(std::string_view pattern) {
    constexpr std::string_view members = R"(\t-\r\x{85}\p{Z})";
    std::string out;
    bool in_class = false;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const char c = pattern[i];
        const char escaped = c == '\\' ? pattern[++i] : '\0';
        if (escaped == 's' && in_class) {
            out += members;
        } else if (escaped == 's' || escaped == 'S') {
            out += fmt::format("[{}{}]", escaped == 's' ? "" : "^", members);
        } else if (escaped != '\0') {
            out += {c, escaped};
        } else {
            out += c;
            in_class = c == '[' || (in_class && c != ']');
        }
    }
    return out;
}

const unsigned char* units(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());  // NOLINT: as these libraries want
}

class splitting_pattern {
  public:
    explicit splitting_pattern(std::string_view text) {
        const std::string written = white_space_of_unicode(text);
        int problem = 0;
        std::size_t at = 0;
        code_.reset(
            pcre2_compile(units(written), written.size(), PCRE2_UTF, &problem, &at, nullptr));
        if (code_ == nullptr) fail(fmt::format("PCRE2 refuses '{}': error {}", written, problem));
        // The patterns take time in proportion to the text.
        pcre2_set_match_limit(context_.get(), std::numeric_limits<std::uint32_t>::max());
    }

    // Appends the parts of `text`.
    void split(std::string_view text, std::vector<std::string_view>& parts) const {
        const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> found(
            pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
        for (std::size_t end = 0; end < text.size();) {
            const int status =
                pcre2_match(code_.get(), units(text), text.size(), end,
                            PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, found.get(), context_.get());
            if (status < 0 && status != PCRE2_ERROR_NOMATCH) {
                fail(fmt::format("PCRE2 cannot divide the text: error {}", status));
            }
            const std::size_t* const match = pcre2_get_ovector_pointer(found.get());
            const std::size_t begin = status < 0 ? text.size() : match[0];
            if (begin > end) parts.push_back(text.substr(end, begin - end));
            if (status < 0) return;
            parts.push_back(text.substr(begin, match[1] - begin));
            end = match[1];
        }
    }

  private:
    std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code_{nullptr, pcre2_code_free};
    std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context_{
        pcre2_match_context_create(nullptr), pcre2_match_context_free};
};

}  // namespace

splitter make_splitter(const std::vector<std::string_view>& patterns) {
    std::vector<std::shared_ptr<const splitting_pattern>> compiled;
    for (const std::string_view text : patterns) {
        compiled.push_back(std::make_shared<splitting_pattern>(text));
    }
    return [compiled](std::string_view text) {
        std::vector<std::string_view> parts{text};
        for (const auto& by : compiled) {
            std::vector<std::string_view> finer;
            for (const std::string_view part : parts) by->split(part, finer);
            parts = std::move(finer);
        }
        return parts;
    };
}

std::string to_nfc(const std::string& text) {
    // utf8proc 2.8 loses this vowel after a syllable. It composes with nothing, so that the parts
    // between can be normalized alone.
    constexpr std::string_view vowel = "\u11a7";
    std::string normalized;
    for (std::size_t begin = 0;;) {
        const std::size_t end = std::min(text.find(vowel, begin), text.size());
        const std::string part = text.substr(begin, end - begin);
        utf8proc_uint8_t* out = nullptr;
        const auto size =
            utf8proc_map(units(part), static_cast<utf8proc_ssize_t>(part.size()), &out,
                         static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
        const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(out, std::free);
        if (size < 0) fail(fmt::format("cannot normalize the text: {}", utf8proc_errmsg(size)));
        normalized.append(out, out + size);
        if (end == text.size()) return normalized;
        normalized += vowel;
        begin = end + vowel.size();
    }
}

std::string unicode_support() {
    return fmt::format("PCRE2 {}.{}, utf8proc {}", PCRE2_MAJOR, PCRE2_MINOR, utf8proc_version());
}
#else
[[noreturn]] void fail_without() {
    fail(
        "this tokenizer needs PCRE2 and utf8proc, which this mx was built without: install "
        "libpcre2-dev and libutf8proc-dev and build mx again, or give the ids of the text with "
        "--tokens ids.npy");
}

}  // namespace

splitter make_splitter(const std::vector<std::string_view>& patterns) {
    if (!patterns.empty()) fail_without();
    return [](std::string_view text) { return std::vector{text}; };
}

std::string to_nfc(const std::string&) { fail_without(); }

std::string unicode_support() { return {}; }
#endif

}  // namespace mx::tokens
