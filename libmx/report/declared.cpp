// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/declared.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libmx/base/named.hpp"
#include "libmx/report/json_line.hpp"

namespace mx::report {
namespace {

// Names of types that are JSON types with limits.
struct limited_type {
    std::string_view name;
    std::string_view json_type;
    std::string_view keyword = {};
    std::int64_t limit = 0;
};
constexpr std::array limited_types{
    limited_type{"count", "integer", "minimum", 0},
    limited_type{"ordinal", "integer", "minimum", 1},
    limited_type{"amount", "number", "minimum", 0},
    limited_type{"positive", "number", "exclusiveMinimum", 0},
    limited_type{"share", "number", "minimum", 0},
};

// make(word) for the words of a|b.
template <typename Make>
list each_alternative(std::string_view words, Make make) {
    list all;
    while (!words.empty()) {
        const std::size_t end = std::min(words.find('|'), words.size());
        all.emplace_back(make(words.substr(0, end)));
        words.remove_prefix(std::min(end + 1, words.size()));
    }
    return all;
}

record texts_of(std::string_view words, bool nullable) {
    list all = each_alternative(words, [](std::string_view word) { return std::string(word); });
    if (nullable) all.emplace_back();
    return {{"enum", std::move(all)}};
}

record keywords_of_type(std::string_view type) {
    if (type == "any") return {};
    const bool nullable = type.ends_with('?');
    if (nullable) type.remove_suffix(1);
    const std::string_view inner =
        type.substr(1, type.size() - std::min<std::size_t>(2, type.size()));
    const auto named = [&](std::string_view name) -> value {
        if (!nullable) return std::string(name);
        return list{std::string(name), std::string("null")};
    };
    if (type.starts_with('['))
        return {{"type", named("array")}, {"items", keywords_of_type(inner)}};
    if (type.starts_with('{')) {
        return {{"type", named("object")}, {"additionalProperties", keywords_of_type(inner)}};
    }
    if (type.starts_with('/')) return {{"type", named("string")}, {"pattern", std::string(inner)}};
    if (type.starts_with('=')) return texts_of(type.substr(1), nullable);
    const bool several = type.find('|') != std::string_view::npos;
    if (type.starts_with('#') && several)
        return {{"anyOf", each_alternative(type, keywords_of_type)}};
    if (type.starts_with('#') || type.starts_with('@')) {
        const std::size_t at = type.find('#');
        const std::string file = at == 0 ? "" : fmt::format("{}.json", type.substr(1, at - 1));
        record r{{"$ref", fmt::format("{}#/$defs/{}", file, type.substr(at + 1))}};
        if (!nullable) return r;
        return {{"anyOf", list{std::move(r), record{{"type", std::string("null")}}}}};
    }
    if (several) return texts_of(type, nullable);
    const limited_type* limited = base::find_named(limited_types, type);
    record r{{"type", named(limited != nullptr ? limited->json_type : type)}};
    if (limited != nullptr) r.emplace_back(limited->keyword, limited->limit);
    if (type == "share") r.emplace_back("maximum", std::int64_t{1});
    return r;
}

}  // namespace

void document_schema::record_schema::add(const member_type& m) {
    record keywords;
    if (!m.text.empty()) keywords.emplace_back("description", std::string(m.text));
    for (auto& keyword : keywords_of_type(m.type)) keywords.push_back(std::move(keyword));
    properties.emplace_back(m.name, std::move(keywords));
    if (m.always) required.emplace_back(std::string(m.name));
}

record document_schema::record_schema::written(std::string_view more_than) const {
    record r{{"type", std::string("object")}, {"properties", properties}, {"required", required}};
    if (more_than.empty()) {
        r.emplace_back("additionalProperties", false);
    } else {
        r.push_back(keywords_of_type(more_than).front());
        r.emplace_back("unevaluatedProperties", false);
    }
    return r;
}

member_list& member_list::add(const member_type& m, std::string_view prefix) {
    all_.push_back(m);
    if (!prefix.empty()) all_.back().name = keep(fmt::format("{}{}", prefix, m.name));
    return *this;
}

document_schema::document_schema(std::string_view schema, std::string_view title,
                                 std::string_view text, bool has_tool)
    : schema_(schema),
      head_{{"$schema", std::string("https://json-schema.org/draft/2020-12/schema")},
            {"title", std::string(title)},
            {"description", std::string(text)}} {
    members_.properties.emplace_back(
        "schema",
        record{{"description", std::string("the form of this document")}, {"const", schema_}});
    members_.required.emplace_back(std::string("schema"));
    member({"tool", "@common#tool", "", has_tool});
}

document_schema& document_schema::member(const member_type& m) {
    members_.add(m);
    return *this;
}

void document_schema::depend(std::string_view a, std::string_view b) {
    if (a == b) return;
    const auto at = std::ranges::find(dependencies_, a, &record::value_type::first);
    if (at == dependencies_.end()) {
        dependencies_.emplace_back(a, list{std::string(b)});
    } else {
        std::get<list>(at->second).emplace_back(std::string(b));
    }
}

document_schema& document_schema::condition(std::string_view keyword, record of) {
    conditions_.emplace_back(keyword, std::move(of));
    return *this;
}

std::string document_schema::file() const {
    std::string name = schema_.substr(schema_.find('.') + 1);
    std::ranges::replace(name, '/', '-');
    return name + ".json";
}

std::string document_schema::text() const {
    record all = head_;
    for (auto& keyword : members_.written()) all.push_back(std::move(keyword));
    all.insert(all.end(), conditions_.begin(), conditions_.end());
    if (!dependencies_.empty()) all.emplace_back("dependentRequired", dependencies_);
    if (!definitions_.empty()) all.emplace_back("$defs", definitions_);
    return json_indented(all);
}

}  // namespace mx::report
