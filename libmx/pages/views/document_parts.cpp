// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/document_parts.hpp"

#include "libmx/base/status.hpp"

namespace mx::pages {

namespace {

// A command among the sentences.
constexpr std::string_view prompt = "$ ";

}  // namespace

bool is_true(const report::record& r, std::string_view name) {
    const bool* value = report::member<bool>(r, name);
    return value != nullptr && *value;
}

std::vector<const report::record*> records_at(const report::record& r, std::string_view name) {
    std::vector<const report::record*> records;
    const auto* all = report::member<report::list>(r, name);
    if (all == nullptr) return records;
    for (const report::value& v : *all) {
        if (const auto* one = std::get_if<report::record>(&v)) records.push_back(one);
    }
    return records;
}

std::vector<std::string> texts_in(const report::record& r, std::string_view name) {
    std::vector<std::string> texts;
    const auto* all = report::member<report::list>(r, name);
    if (all == nullptr) return texts;
    for (const report::value& v : *all) {
        if (const auto* text = std::get_if<std::string>(&v)) texts.push_back(*text);
    }
    return texts;
}

std::optional<codec::recipe> recipe_named(const std::string& text) {
    try {
        return codec::parse_recipe(text);
    } catch (const base::error&) {
        return {};
    }
}

report::list verdict_lines(const report::notes& notes) {
    return report::to_list(notes, [](const report::note& n) {
        return std::string(n.is == report::note::kind::command ? prompt : "") + n.text;
    });
}

report::section verdict_of(const report::record& tail) {
    report::section s{.heading = verdict_heading};
    const auto* lines = report::member<report::list>(tail, "verdict");
    if (lines == nullptr) return s;
    for (const report::value& v : *lines) {
        const auto* line = std::get_if<std::string>(&v);
        if (line == nullptr) continue;
        s.notes.push_back(line->starts_with(prompt) ? report::command(line->substr(prompt.size()))
                                                    : report::item(*line));
    }
    return s;
}

}  // namespace mx::pages
