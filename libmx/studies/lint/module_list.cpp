// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/lint/module_list.hpp"

#include <optional>
#include <utility>

#include "libmx/base/glob.hpp"

namespace mx::lint {
namespace {

constexpr std::string_view regular = "re:";

// A regular expression as a pattern; none if it is more. re.match() need not reach the end.
std::optional<std::string> glob_of(std::string_view expression) {
    constexpr std::string_view more = "[](){}|+?*";
    std::string glob;
    bool ends = false;
    for (std::size_t i = 0; i < expression.size(); ++i) {
        const char c = expression[i];
        const char next = i + 1 < expression.size() ? expression[i + 1] : '\0';
        if (c == '^' && i == 0) continue;
        if (c == '$' && i + 1 == expression.size()) {
            ends = true;
        } else if (c == '\\') {
            if (next != '.' && next != '-' && next != '_') return std::nullopt;
            glob += next;
            ++i;
        } else if (c == '.') {
            glob += next == '*' ? '*' : '?';
            if (next == '*') ++i;
        } else if (more.find(c) != std::string_view::npos) {
            return std::nullopt;
        } else {
            glob += c;
        }
    }
    return ends ? glob : glob + "*";
}

}  // namespace

void module_list::add(const std::string& entry) {
    std::optional<std::string> glob;
    if (entry.starts_with(regular)) {
        glob = glob_of(std::string_view(entry).substr(regular.size()));
        if (!glob) unsure_ = true;
    } else if (entry.find_first_of("*?[") != std::string::npos) {
        glob = entry;
    } else if (!entry.empty()) {
        names_.insert(entry);
    }
    if (!glob) return;
    if (patterns_.size() == most_patterns) {
        unsure_ = true;
    } else {
        patterns_.push_back({entry, std::move(*glob)});
    }
}

std::string_view module_list::entry_of(std::string_view module) const {
    const auto named = [this](std::string_view part) -> std::string_view {
        const auto at = names_.find(part);
        return at == names_.end() ? std::string_view() : *at;
    };
    if (const std::string_view whole = named(module); !whole.empty()) return whole;
    for (std::size_t dot = module.find('.'); dot != std::string_view::npos;
         dot = module.find('.', dot + 1)) {
        if (const auto begin = named(module.substr(0, dot)); !begin.empty()) return begin;
        if (const auto end = named(module.substr(dot + 1)); !end.empty()) return end;
    }
    for (const pattern& p : patterns_) {
        if (base::glob_match(p.glob, module)) return p.text;
    }
    return {};
}

}  // namespace mx::lint
