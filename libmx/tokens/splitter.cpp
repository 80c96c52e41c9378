// SPDX-License-Identifier: Apache-2.0
#include "libmx/tokens/splitter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/tokens/tables.hpp"
#include "libmx/tokens/tokenizer.hpp"

#if defined(MX_HAS_UNICODE)
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>
#endif

namespace mx::tokens {

#if defined(MX_HAS_UNICODE)
namespace {

// PCRE2's \s contains U+180E, which other libraries do not count as white space since Unicode 6.3.
std::string white_space_of_unicode(std::string_view pattern) {
    constexpr std::string_view members = R"(\t-\r\x{85}\p{Z})";
    std::string out;
    bool in_class = false;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] == '\\') {
            const char letter = pattern[++i];
            if (letter == 's' && in_class) {
                out += members;
            } else if (letter == 's' || letter == 'S') {
                out += fmt::format("[{}{}]", letter == 's' ? "" : "^", members);
            } else {
                out += {'\\', letter};
            }
            continue;
        }
        if (pattern[i] == '[') in_class = true;
        if (pattern[i] == ']') in_class = false;
        out += pattern[i];
    }
    return out;
}

PCRE2_SPTR units(std::string_view text) {
    return reinterpret_cast<PCRE2_SPTR>(text.data());  // NOLINT: the interface of PCRE2
}

// The patterns take time in proportion to the text, of which the limits of PCRE2 are independent.
pcre2_match_context* without_limits() {
    pcre2_match_context* const context = pcre2_match_context_create(nullptr);
    if (context == nullptr) throw std::bad_alloc();
    pcre2_set_match_limit(context, std::numeric_limits<std::uint32_t>::max());
    return context;
}

}  // namespace

struct splitter::pattern {
    explicit pattern(std::string_view text) : context(without_limits(), pcre2_match_context_free) {
        const std::string written = white_space_of_unicode(text);
        int problem = 0;
        PCRE2_SIZE at = 0;
        code.reset(pcre2_compile(units(written), written.size(), PCRE2_UTF | PCRE2_UCP, &problem,
                                 &at, nullptr));
        if (code == nullptr) {
            throw base::error(base::error_kind::unavailable,
                              fmt::format("PCRE2 of this machine does not compile '{}': error {} "
                                          "at {}",
                                          written, problem, at));
        }
    }

    // Appends the parts of `text`.
    void split(std::string_view text, std::vector<std::string_view>& parts) const {
        const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> found(
            pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
        if (found == nullptr) throw std::bad_alloc();
        std::size_t end = 0;
        while (end < text.size()) {
            const int status =
                pcre2_match(code.get(), units(text), text.size(), end,
                            PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, found.get(), context.get());
            if (status < 0 && status != PCRE2_ERROR_NOMATCH) {
                throw base::error(base::error_kind::unavailable,
                                  fmt::format("PCRE2 cannot divide the text: error {}", status));
            }
            const PCRE2_SIZE* const range = pcre2_get_ovector_pointer(found.get());
            const std::size_t begin = status < 0 ? text.size() : range[0];
            if (begin > end) parts.push_back(text.substr(end, begin - end));
            if (status < 0) return;
            parts.push_back(text.substr(begin, range[1] - begin));
            end = range[1];
        }
    }

    std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code{nullptr, pcre2_code_free};
    std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context;
};

std::string to_nfc(std::string text) {
    if (std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) {
        return text;
    }
    utf8proc_uint8_t* out = nullptr;
    const auto size =
        utf8proc_map(units(text), static_cast<utf8proc_ssize_t>(text.size()), &out,
                     static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(out, std::free);
    if (size < 0) {
        throw base::error(base::error_kind::unavailable,
                          fmt::format("cannot normalize the text: {}", utf8proc_errmsg(size)));
    }
    return {out, out + size};
}

std::string unicode_support() {
    std::string pcre(64, '\0');
    const int length = pcre2_config(PCRE2_CONFIG_VERSION, pcre.data());
    pcre.resize(static_cast<std::size_t>(std::max(length, 1)) - 1);
    return fmt::format("PCRE2 {}, utf8proc {}", pcre, utf8proc_version());
}
#else
namespace {

[[noreturn]] void refuse_without() {
    throw base::error(base::error_kind::unavailable,
                      "this tokenizer needs PCRE2 and utf8proc, which this mx was built without: "
                      "install libpcre2-dev and libutf8proc-dev and build mx again, or give the "
                      "ids of the text with --tokens ids.npy");
}

}  // namespace

struct splitter::pattern {
    explicit pattern(std::string_view) { refuse_without(); }
    void split(std::string_view, std::vector<std::string_view>&) const {}
};

std::string to_nfc(std::string text) {
    const bool ascii =
        std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    if (!ascii) refuse_without();
    return text;
}

std::string unicode_support() { return {}; }
#endif

splitter::splitter(const std::vector<std::string_view>& patterns) {
    for (const std::string_view text : patterns) {
        patterns_.push_back(std::make_unique<pattern>(text));
    }
}

splitter::~splitter() = default;

std::vector<std::string_view> splitter::parts(std::string_view text) const {
    std::vector<std::string_view> parts{text};
    for (const auto& by : patterns_) {
        std::vector<std::string_view> finer;
        for (const std::string_view part : parts) by->split(part, finer);
        parts = std::move(finer);
    }
    return parts;
}

}  // namespace mx::tokens
