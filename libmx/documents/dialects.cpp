// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/codec/dialect_columns.hpp"
#include "libmx/documents/reference.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::documents {
namespace {

using codec::dialect;
using codec::dialect_column;
using codec::dialect_columns;
using pages::text;
using pages::undefined;

// The settings that a dialect offers, as separate questions.
struct offer {
    std::string_view name;
    std::string_view question;
    std::string_view dialect::*list;
};
constexpr std::array dialect_offers{
    offer{"rules", "Which scale rules does it have, the default first?", &dialect::rules},
    offer{"roundings", "Which element roundings does it have, the default first?",
          &dialect::roundings},
    offer{"elements", "Which element formats does it have?", &dialect::elements},
};

std::string offer_text(const dialect& d, const offer& o) {
    if (!d.blocks && o.list == &dialect::rules) return "none: it converts single values only";
    const std::string_view list = d.*o.list;
    return list.empty() ? "all" : std::string(list);
}

std::string_view mark_of(const codec::evidence e) { return codec::description_of(e).word; }

std::string with_mark(const codec::dialect_answer& a, std::string_view words) {
    return fmt::format("{} [{}]", words, mark_of(a.mark));
}

constexpr std::array dialect_members = std::to_array<report::declared<dialect>>({
    {"name", "string", "", [](auto& d) { return d.name; }},
    {"summary", "string", "", [](auto& d) { return d.summary; }},
    {"source", "string", "revision of the implementation, or the document",
     [](auto& d) { return d.source; }},
    {"version", "string?", "the release that was looked at; null where only a commit is known",
     [](auto& d) { return d.version.empty() ? undefined() : text(d.version); }},
    {"verified_by", "string", "what holds the emulation to it",
     [](auto& d) { return d.verified_by; }},
    {"blocks", "boolean", "it quantizes blocks", [](auto& d) { return d.blocks; }},
});
constexpr report::member_type evidence_member{
    "evidence", "C|R|S|T?",
    "how the answer is known: C a conversion that was run, R code that was run, T a transcription, "
    "S source that was read; null: no answer"};

report::record record_of(const dialect& d) {
    report::record r = report::written(dialect_members, d);
    for (const offer& o : dialect_offers) r.emplace_back(o.name, offer_text(d, o));
    for (const dialect_column& c : dialect_columns()) {
        const codec::dialect_answer a = c.answer(d);
        r.emplace_back(c.name, a.applies ? text(a.words.word) : undefined());
        r.emplace_back(fmt::format("{}_evidence", c.name),
                       a.applies ? text(mark_of(a.mark)) : undefined());
    }
    return r;
}

// dialect_members and those that record_of adds.
report::document_schema& define_dialect(report::document_schema& s) {
    report::member_list all;
    all.add(dialect_members);
    for (const offer& o : dialect_offers) all.add({o.name, "string", o.question});
    for (const dialect_column& c : dialect_columns()) {
        all.add({c.name, "string?", c.question});
        all.add(evidence_member, fmt::format("{}_", c.name));
    }
    return s.define("dialect", all);
}

// An answer of one dialect.
struct answered {
    std::string_view name, question;
    std::string answer;
    std::string_view evidence;
};
constexpr std::array answer_members = std::to_array<report::declared<answered>>({
    {"name", "string", "", [](auto& a) { return a.name; }},
    {"question", "string", "", [](auto& a) { return a.question; }},
    {"answer", "string", "", [](auto& a) { return a.answer; }},
    {"evidence", evidence_member.type, evidence_member.text, [](auto& a) { return a.evidence; }},
});

// The answers of two dialects.
struct both_answered {
    std::string_view name, question;
    std::string a, b;
};
constexpr std::array difference_members = std::to_array<report::declared<both_answered>>({
    {"name", "string", "", [](auto& d) { return d.name; }},
    {"question", "string", "", [](auto& d) { return d.question; }},
    {"a", "string", "", [](auto& d) { return d.a; }},
    {"b", "string", "", [](auto& d) { return d.b; }},
});

// The questions that `a` and `b` answer differently, by name.
std::string differing(const dialect& a, const dialect& b) {
    std::string out;
    for (const dialect_column& c : dialect_columns()) {
        if (c.answer(a).words.word == c.answer(b).words.word) continue;
        out += fmt::format("{}{}", out.empty() ? "" : ", ", c.name);
    }
    return out;
}

// Of implementations whose bits are known to have changed: every version.
report::section history_section(std::string_view only = {}) {
    report::section s{.heading = "Versions: implementations whose results changed",
                      .columns = {{"name", "dialect"},
                                  {"version", "release"},
                                  {"source", "what was looked at"},
                                  {"differs", "differences from the newest"}}};
    for (const dialect& d : codec::dialects()) {
        const dialect& newest = *codec::find_dialect(codec::family_of(d));
        const bool several = std::ranges::any_of(codec::dialects(), [&](const dialect& other) {
            return other.id != d.id && codec::family_of(other) == codec::family_of(d);
        });
        if (!several || (!only.empty() && codec::family_of(d) != only)) continue;
        s.add(std::string(d.name), d.version.empty() ? "not released" : std::string(d.version),
              std::string(d.source),
              d.id == newest.id ? std::string("(the newest known)") : differing(d, newest));
    }
    s.notes = {
        "NAME is the newest known version, NAME@VERSION a release; one without a release is a "
        "commit, which also selects it (dialect=NAME@COMMIT). Of all other implementations one "
        "version is known."};
    return s;
}

std::string mark_legend() {
    std::string out = "Evidence:";
    for (const codec::evidence e : codec::evidence_marks()) {
        const codec::trait_description w = codec::description_of(e);
        out += fmt::format(" {} {};", w.word, w.meaning);
    }
    out.back() = '.';
    return out;
}

// Columns of the overview, besides the rules.
constexpr std::array<std::string_view, 5> overview_columns{"log2", "inf_amax", "nan_amax",
                                                           "zero_block", "sign_of_zero"};

// "255 R": the answer of a column in short, with its evidence mark.
std::string short_answer(const dialect& d, std::string_view column) {
    const dialect_column* c = codec::find_dialect_column(column);
    const codec::dialect_answer a = c->answer(d);
    return a.applies ? fmt::format("{} {}", a.words.word, mark_of(a.mark)) : "-";
}

// Every dialect with every answer; the table shows the questions asked most.
report::document dialects_document() {
    report::document doc;
    doc.head = pages::document_head("mx.dialects/1");
    std::vector<report::record> rows;
    for (const dialect& d : codec::dialects()) {
        doc.results.push_back(record_of(d));
        report::record row{{"name", text(d.name)},
                           {"rules", d.blocks ? text(d.rules) : text("(conversions only)")}};
        for (const std::string_view c : overview_columns) row.emplace_back(c, short_answer(d, c));
        rows.push_back(std::move(row));
    }
    std::vector<report::column> columns{{"name", "dialect"}, {"rules", "scale rules"}};
    for (const std::string_view c : overview_columns) {
        columns.push_back({std::string(c), std::string(codec::find_dialect_column(c)->title)});
    }
    doc.sections.push_back(
        {"Dialects: implementations that a recipe reproduces exactly (dialect=NAME)",
         std::move(columns),
         std::move(rows),
         {},
         {"The first rule is the default. Inf, NaN and zero block: the code of the scale.",
          mark_legend(),
          "'mx explain dialects NAME' describes one with its source, 'mx explain dialects A B' the "
          "differences "
          "between two; docs/design/dialects.md has the whole table."}});
    doc.sections.push_back(history_section());
    return doc;
}

// One dialect: every question, its answer and the evidence for it.
report::document dialect_document(const dialect& d) {
    report::document doc;
    doc.head = pages::document_head("mx.dialect/1");
    doc.head.emplace_back("dialect", record_of(d));
    std::vector<report::record> rows;
    for (const offer& o : dialect_offers) {
        rows.push_back(report::written(answer_members, {o.name, o.question, offer_text(d, o),
                                                        mark_of(codec::evidence::source)}));
    }
    for (const dialect_column& c : dialect_columns()) {
        const codec::dialect_answer a = c.answer(d);
        rows.push_back(report::written(
            answer_members,
            {c.name, c.question,
             a.applies ? std::string(a.words.meaning) : fmt::format("({})", a.words.word),
             mark_of(a.mark)}));
    }
    for (const report::record& r : rows) doc.results.push_back(r);
    doc.sections.push_back({fmt::format("{}: {}", d.name, d.summary),
                            {{"question", "question"}, {"answer", "answer"}, {"evidence", ""}},
                            std::move(rows),
                            {},
                            {fmt::format("Source: {}.", d.source),
                             fmt::format("Verified by {}.", d.verified_by), mark_legend()}});
    report::section history = history_section(codec::family_of(d));
    if (!history.rows.empty()) doc.sections.push_back(std::move(history));
    return doc;
}

// The questions that `a` and `b` answer differently.
report::document dialect_differences(const dialect& a, const dialect& b) {
    std::vector<report::record> rows;
    const auto add = [&](std::string_view name, std::string_view question, std::string of_a,
                         std::string of_b) {
        rows.push_back(report::written(difference_members,
                                       {name, question, std::move(of_a), std::move(of_b)}));
    };
    for (const offer& o : dialect_offers) {
        const std::string of_a = offer_text(a, o);
        const std::string of_b = offer_text(b, o);
        if (of_a != of_b) add(o.name, o.question, of_a, of_b);
    }
    for (const dialect_column& c : dialect_columns()) {
        const codec::dialect_answer of_a = c.answer(a);
        const codec::dialect_answer of_b = c.answer(b);
        if (of_a.words.word == of_b.words.word) continue;
        const auto cell = [](const codec::dialect_answer& x) {
            return x.applies ? with_mark(x, x.words.meaning) : fmt::format("({})", x.words.word);
        };
        add(c.name, c.question, cell(of_a), cell(of_b));
    }
    report::document doc;
    doc.head = pages::document_head("mx.dialect_differences/1");
    doc.head.emplace_back("a", record_of(a));
    doc.head.emplace_back("b", record_of(b));
    for (const report::record& r : rows) doc.results.push_back(r);
    const std::string verdict = rows.empty()
                                    ? fmt::format("{} and {} do not differ", a.name, b.name)
                                    : fmt::format("Differences between {} and {}", a.name, b.name);
    doc.sections.push_back(
        {verdict,
         {{"question", "question"}, {"a", std::string(a.name)}, {"b", std::string(b.name)}},
         std::move(rows),
         {},
         {mark_legend()}});
    if (doc.results.empty()) doc.sections.front().columns.clear();
    return doc;
}

const dialect& dialect_named(const std::string& name) {
    if (const dialect* d = codec::find_dialect(name)) return *d;
    return base::row_named(codec::dialects(), "dialect", name);
}

}  // namespace

report::document dialects(const std::vector<std::string>& names) {
    if (names.empty()) return dialects_document();
    if (names.size() == 1) return dialect_document(dialect_named(names[0]));
    return dialect_differences(dialect_named(names[0]), dialect_named(names[1]));
}

report::document_schema dialects_schema() {
    report::document_schema s("mx.dialects/1", "mx explain dialects",
                              "The implementations whose behaviour a recipe can follow. null: the "
                              "question does not apply.");
    s.member({"results", "[#dialect]", "a dialect each"});
    return define_dialect(s);
}

report::document_schema dialect_schema() {
    return report::document_schema("mx.dialect/1", "mx explain dialects NAME",
                                   "One dialect, question by question.")
        .member({"dialect", "@dialects-1#dialect", "the dialect"})
        .member({"results", "[#answer]", "a question each"})
        .define("answer", answer_members);
}

report::document_schema dialect_differences_schema() {
    return report::document_schema("mx.dialect_differences/1", "mx explain dialects NAME NAME",
                                   "Where two dialects differ.")
        .member({"a", "@dialects-1#dialect", "the first"})
        .member({"b", "@dialects-1#dialect", "the second"})
        .member({"results", "[#difference]", "a question that they answer differently each"})
        .define("difference", difference_members);
}

}  // namespace mx::documents
