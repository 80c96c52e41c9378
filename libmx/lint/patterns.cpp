// SPDX-License-Identifier: Apache-2.0
#include "libmx/lint/patterns.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "libmx/base/glob.hpp"

#ifdef MX_HAS_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

namespace mx::lint {
namespace {

constexpr std::string_view expression_mark = "re:";

enum class outcome { yes, no, unknown };

}  // namespace

#ifdef MX_HAS_PCRE2

// Work and memory of a match are limited, as the file chooses the expression.
struct module_pattern::expression {
    explicit expression(const std::string& text)
        : data(nullptr, pcre2_match_data_free), code(nullptr, pcre2_code_free) {
        int problem = 0;
        std::size_t at = 0;
        code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                                 &problem, &at, nullptr));
        pcre2_set_match_limit(context.get(), 2'000);
        pcre2_set_depth_limit(context.get(), 1'000);
        pcre2_set_heap_limit(context.get(), 1'024);
        data.reset(pcre2_match_data_create(1, nullptr));
    }
    outcome match(std::string_view text, bool anywhere) const {
        if (code == nullptr || data == nullptr || given_up) return outcome::unknown;
        const int status =
            pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                        anywhere ? 0 : PCRE2_ANCHORED, data.get(), context.get());
        if (status >= 0) return outcome::yes;
        given_up = status != PCRE2_ERROR_NOMATCH;  // the limit: it costs as much on every name
        return given_up ? outcome::unknown : outcome::no;
    }

    mutable bool given_up = false;

    std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data;
    std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code;
    std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context{
        pcre2_match_context_create(nullptr), pcre2_match_context_free};
};

#else

// Without PCRE2 nothing is known of an expression.
struct module_pattern::expression {
    explicit expression(const std::string&) {}
    static outcome match(std::string_view, bool) { return outcome::unknown; }
};

#endif

module_pattern::module_pattern(std::string text) : text_(std::move(text)) {
    if (text_.starts_with(expression_mark)) {
        expression_ = std::make_unique<expression>(text_.substr(expression_mark.size()));
    }
}
module_pattern::~module_pattern() = default;
module_pattern::module_pattern(module_pattern&&) noexcept = default;

bool module_pattern::is_name() const {
    return expression_ == nullptr && text_.find_first_of("*?[^$()|\\+") == std::string::npos;
}

bool module_pattern::matches(std::string_view module) const {
    if (expression_ != nullptr) return expression_->match(module, false) == outcome::yes;
    return text_ == module || (!is_name() && base::glob_match(text_, module));
}

bool module_pattern::may_match(std::string_view module) const {
    if (expression_ != nullptr) return expression_->match(module, true) != outcome::no;
    const std::string_view own = without_wrappers(text_);
    if (!is_name()) {
        return base::glob_match("*" + std::string(own) + "*", module);
    }
    return !own.empty() && module.find(own) != std::string_view::npos;
}

void module_list::add(std::string text) {
    const module_pattern& entry = entries_.emplace_back(std::move(text));
    if (entry.is_name()) {
        names_.emplace(entry.text(), entries_.size() - 1);
    } else {
        patterns_.push_back(entries_.size() - 1);
    }
}

// Matching a pattern counts as a hundred names.
bool module_list::spend(const module_pattern& on) const {
    const std::uint64_t cost = on.is_name() ? 1 : 100;
    if (left_ < cost) return false;
    left_ -= cost;
    return true;
}

const module_pattern* module_list::match(std::string_view module) const {
    const auto name = names_.find(module);
    if (name != names_.end()) return &entries_[name->second];
    for (const std::size_t place : patterns_) {
        const module_pattern& p = entries_[place];
        if (!spend(p)) return nullptr;
        if (p.matches(module)) return &p;
    }
    return nullptr;
}

bool module_list::may_match(std::string_view module) const {
    return std::ranges::any_of(
        entries_, [&](const module_pattern& p) { return !spend(p) || p.may_match(module); });
}

std::string_view without_wrappers(std::string_view name) {
    constexpr std::array<std::string_view, 2> wrappers{"model.", "language_model."};
    for (bool changed = true; changed;) {
        changed = false;
        for (const std::string_view w : wrappers) {
            if (!name.starts_with(w)) continue;
            name.remove_prefix(w.size());
            changed = true;
        }
    }
    return name;
}

}  // namespace mx::lint
