// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "libmx/base/named.hpp"
#include "libmx/base/parsed.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/codec/dialects.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/documents/judging.hpp"
#include "libmx/documents/reference.hpp"
#include "libmx/format/block_formats.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/format/roundings.hpp"
#include "libmx/format/scale_formats.hpp"
#include "libmx/format/shared_formats.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/metrics/metrics.hpp"
#include "libmx/pages/views/format_facts.hpp"
#include "libmx/pages/views/recipe_words.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/scale/scale_rules.hpp"

namespace mx::documents {
namespace {

// 0x7f, 0b0111 or 127; none if the text is something else.
std::optional<std::uint32_t> parse_code(const std::string& text) {
    int radix = 10;
    std::string digits = text;
    const std::string prefix = text.substr(0, 2);
    if (prefix == "0x" || prefix == "0X") radix = 16;
    if (prefix == "0b" || prefix == "0B") radix = 2;
    if (radix != 10) digits = text.substr(2);
    return base::parsed<std::uint32_t>(digits, radix);
}

// Every code of the format, or the requested ones.
template <typename Format>
std::vector<report::record> meanings(const Format& f, const explain_options& o) {
    const std::uint32_t count = 1u << f.bits();
    std::vector<report::record> rows;
    for (const std::string& text : o.names) {
        const std::optional<std::uint32_t> code = parse_code(text);
        if (!code || *code >= count) {
            base::refuse("'{}' is not a code of {}: give {} to {}, 0b... or decimal", text, f.name,
                         pages::hex_code(f.bits(), 0), pages::hex_code(f.bits(), count - 1));
        }
        rows.push_back(pages::meaning_of(f, *code));
    }
    for (std::uint32_t code = 0; o.names.empty() && code < count; ++code) {
        rows.push_back(pages::meaning_of(f, code));
    }
    return rows;
}

template <typename Format>
report::document code_document(const Format& f, const explain_options& o, std::string heading) {
    std::vector<report::record> rows = meanings(f, o);
    report::document d;
    d.head = pages::document_head("mx.codes/1");
    d.head.emplace_back("format", pages::limits_of(f));
    report::notes notes;
    for (const report::record& r : rows) {
        // A 2^-127 has ninety digits: too many for a column, not for a line.
        const auto& exact = std::get<std::string>(*report::find(r, "exact"));
        if (!o.names.empty() && exact.size() > 24) {
            notes.push_back(fmt::format("{} is exactly {}",
                                        std::get<std::string>(*report::find(r, "code")), exact));
        }
    }
    d.sections.push_back({std::move(heading),
                          {{"code", "code"},
                           {"decimal_code", "decimal", report::cell::integer},
                           {"fields", "bits"},
                           {"arithmetic", "meaning"},
                           {"value", "value", report::cell::shortest},
                           {"hex", "hexadecimal"},
                           {"class", "class"}},
                          rows,
                          {},
                          std::move(notes)});
    d.results = rows;
    return d;
}

report::document recipe_document(const std::string& subject) {
    const codec::recipe r = codec::parse_recipe(subject);
    report::document d;
    d.head = pages::document_head("mx.recipe/1");
    const std::vector<report::record> rows = pages::recipe_words(r);
    d.results = rows;
    d.sections.push_back({{}, {{"part", "part"}, {"meaning", "meaning"}}, rows, {}, {}});
    return d;
}

report::document policy_document(const explain_options& o) {
    if (o.names.size() > 1) base::refuse("explain policy takes one name or file");
    report::document d = policy::document_of(
        policy_of(o.names.empty() ? "inference" : o.names.front()), target_of(o.target));
    report::record head = pages::document_head("mx.policy/1");
    head.insert(head.end(), d.head.begin() + 1, d.head.end());
    d.head = std::move(head);
    return d;
}

// Where publications disagree.
std::string_view remark_on(const format::scale_format& f) {
    if (f.name != "ue5m3") return {};
    return "; the largest value is 114688 (CUDA 13.4, AMD Quark); ue5m3_inf has the other "
           "published definition";
}

template <typename... Lists>
std::vector<std::string_view> names_in(const Lists&... lists) {
    std::vector<std::string_view> all;
    const auto add = [&](const auto& list) {
        for (const auto& row : list) all.push_back(row.name);
    };
    (add(lists), ...);
    return all;
}

std::vector<std::string_view> format_names() {
    std::vector<std::string_view> all =
        names_in(format::block_formats, format::element_formats, format::scale_formats);
    for (const format::shared_format& f : format::shared_formats()) all.push_back(f.element.name);
    return all;
}

// Whether it is a format, or a recipe that begins with the name of one.
bool begins_with_format(const std::string& subject) {
    std::string name = subject.substr(0, subject.find_first_of(":,; "));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    return codec::find_format(name) != nullptr || std::ranges::count(format_names(), name) != 0;
}

// The codes of an element or scale format, or a recipe in words.
report::document format_document(const explain_options& o) {
    if (const format::element_format* f = format::find_element_format(o.subject)) {
        return code_document(
            *f, o, fmt::format("{}: {} ({})", f->name, pages::layout_text(*f), f->summary));
    }
    if (const format::scale_format* f = format::find_scale_format(o.subject)) {
        if (!f->has_codes()) {
            base::refuse("{}: {}; 'mx explain formats' has its limits", f->name, f->summary);
        }
        return code_document(*f, o, fmt::format("{}: {}{}", f->name, f->summary, remark_on(*f)));
    }
    if (!begins_with_format(o.subject)) {
        base::refuse(base::unknown("recipe or format", o.subject, format_names()));
    }
    if (!o.names.empty()) {
        base::refuse("'{}' is not an element or scale format, so it has no code '{}'", o.subject,
                     o.names.front());
    }
    return recipe_document(o.subject);
}

report::document listed_formats(const std::vector<std::string>& names) {
    if (names.empty()) return formats();
    return format_document({names.front(), {names.begin() + 1, names.end()}, {}});
}

/// THE LISTS that explain prints, and how an entry of one is described.
struct reference_list {
    std::string_view name;
    report::document (*document)(const std::vector<std::string>& names);
    std::vector<std::string_view> (*names)();
};

constexpr std::array lists{
    reference_list{
        "rules", rules,
        [] { return names_in(scale::scale_rules, format::roundings, codec::recipe_keys()); }},
    reference_list{"dialects", dialects, [] { return names_in(codec::dialects()); }},
    reference_list{"accumulators", accumulators, [] { return names_in(gemm::accumulators()); }},
    reference_list{"metrics", metrics, [] { return names_in(metrics::all()); }},
    reference_list{"formats", listed_formats, format_names},
};

// An entry of the only list that has it.
report::document entry_document(const explain_options& o) {
    const std::string name = o.subject.substr(0, o.subject.find(':'));
    const reference_list* found = nullptr;
    for (const reference_list& list : lists) {
        const std::vector<std::string_view> names = list.names();
        if (std::ranges::find(names, name) == names.end()) continue;
        if (found != nullptr) {
            base::refuse("'{0}' is in two lists: 'mx explain {1} {0}' or 'mx explain {2} {0}'",
                         o.subject, found->name, list.name);
        }
        found = &list;
    }
    if (found == nullptr) {
        base::refuse(
            "'{}' is no recipe, format, rule, dialect, accumulator model or metric; did you mean "
            "'{}'?",
            o.subject, base::nearest(name, explained_names()));
    }
    std::vector<std::string> names{o.subject};
    names.insert(names.end(), o.names.begin(), o.names.end());
    return found->document(names);
}

}  // namespace

report::document explain(const explain_options& o) {
    if (o.subject == "policy") return policy_document(o);
    if (!o.target.empty()) base::refuse("--target is an option of 'mx explain policy'");
    if (const reference_list* list = base::find_named(lists, o.subject)) {
        return list->document(o.names);
    }
    if (begins_with_format(o.subject)) return format_document(o);
    return entry_document(o);
}

report::document_schema codes_schema() {
    return report::document_schema("mx.codes/1", "mx explain FORMAT",
                                   "What the codes of a format mean.")
        .member({"format", "@formats-1#limits", "the format"})
        .member({"results", "[#code]", "a code each"})
        .define("code", pages::meaning_members);
}

std::vector<std::string_view> explained_names() {
    std::vector<std::string_view> all{"policy"};
    for (const reference_list& list : lists) {
        all.push_back(list.name);
        for (const std::string_view name : list.names()) all.push_back(name);
    }
    return all;
}

}  // namespace mx::documents
