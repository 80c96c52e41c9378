// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/accumulator_words.hpp"
#include "libmx/documents/reference.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "libmx/base/joined.hpp"
#include "libmx/base/named.hpp"
#include "libmx/base/status.hpp"
#include "libmx/gemm/accumulator_keys.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/operand_formats.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::documents {

using gemm::accumulator;
using gemm::accumulator_key;
using pages::text;
using pages::undefined;
namespace {

struct chip {
    std::string_view name;
    std::string_view parts;
};
constexpr std::array chips{
    chip{"sm100", "B200"}, chip{"sm120", "RTX Blackwell"}, chip{"sm90", "H100"},
    chip{"sm89", "Ada"},   chip{"sm80", "A100"},           chip{"cdna3", "MI300X"},
};

// The names of the rows whose bit is in `set`.
template <typename Rows, typename Word>
std::string words_in(const Rows& rows, std::uint32_t set, std::string_view between, Word word) {
    std::string out;
    for (const auto& row : rows) {
        if ((set & row.bit) != 0) out += fmt::format("{}{}", out.empty() ? "" : between, word(row));
    }
    return out;
}

}  // namespace

std::string operands_text(const accumulator& m) {
    if (m.operands == gemm::takes_everything) return "all";
    return words_in(gemm::operand_words, m.operands, " ",
                    [](const gemm::operand_word& w) { return std::string(w.name); });
}

std::string scales_text(const accumulator& m) {
    if (m.scales == 0) return "none";
    return words_in(gemm::operand_scales, m.scales, " ", [](const gemm::operand_scale& s) {
        return fmt::format("{}/{}", s.format, s.block);
    });
}

std::string chip_text(const accumulator& m) {
    const chip* c = base::find_named(chips, m.name.substr(0, m.name.find('.')));
    return c != nullptr ? fmt::format("{}: {}", c->name, c->parts) : "software";
}

std::string evidence_text(const accumulator& m) {
    const std::string_view word = word_of(gemm::evidence_words, m.known_from).name;
    constexpr std::uint32_t mixing = gemm::takes_fp8 | gemm::takes_fp6 | gemm::takes_fp4;
    const bool all = (m.compared & m.operands) == m.operands;
    const bool pairs = m.mixed_compared || (m.operands & mixing) == 0;
    return all && pairs ? std::string(word) : fmt::format("{} in part", word);
}

std::string field_text(const accumulator& m, std::string_view key) {
    const accumulator_key* k = base::find_named(gemm::accumulator_keys(), key);
    return k != nullptr && k->applies(m.how) ? k->get(m) : "-";
}

namespace {

report::value key_value(const accumulator& m, const accumulator_key& key) {
    return key.applies(m.how) ? report::value(key.get(m)) : undefined();
}

// Every name of a policy, as the type of a member.
std::string one_of(const auto& words) { return base::joined(base::names_of(words), "|"); }
const std::string algorithm_type = one_of(gemm::algorithm_words),
                  intake_type = one_of(gemm::intake_words),
                  conversion_type = one_of(gemm::conversion_words),
                  evidence_type = one_of(gemm::evidence_words);

// The members of a model before and behind its keys.
const std::array first_members = std::to_array<report::declared<accumulator>>({
    {"name", "string", "", [](auto& m) { return m.name; }},
    {"chip", "string", "", [](auto& m) { return chip_text(m); }},
    {"instruction", "string", "empty: software", [](auto& m) { return m.instruction; }},
    {"algorithm", algorithm_type, "how products are added",
     [](auto& m) { return word_of(gemm::algorithm_words, m.how).name; }},
    {"intake", intake_type, "how operands enter",
     [](auto& m) { return word_of(gemm::intake_words, m.enters).name; }},
    {"operands", "string", "formats it takes, separated by spaces",
     [](auto& m) { return operands_text(m); }},
    {"scales", "string", "scale formats and blocks it takes, or none",
     [](auto& m) { return scales_text(m); }},
});
const std::array last_members = std::to_array<report::declared<accumulator>>({
    {"evidence", evidence_type, "how well the model is known",
     [](auto& m) { return word_of(gemm::evidence_words, m.known_from).name; }},
    {"evidence_operands", "string", "the operands that the evidence is about",
     [](auto& m) {
         accumulator compared = m;
         compared.operands = m.compared & m.operands;
         return operands_text(compared);
     }},
    {"evidence_mixed", "boolean", "the evidence is also about operands of two formats",
     [](auto& m) { return m.mixed_compared; }},
    {"remark", "string", "", [](auto& m) { return m.remark; }},
});

report::record record_of(const accumulator& m) {
    report::record r = report::written(first_members, m);
    for (const accumulator_key& key : gemm::accumulator_keys()) {
        r.emplace_back(key.name, key_value(m, key));
    }
    // The rounding of models without steps.
    if (!gemm::has_steps(m.how)) {
        for (auto& [name, value] : r) {
            if (name == "convert") value = text(word_of(gemm::conversion_words, m.convert).name);
        }
    }
    report::append(r, last_members, m);
    return r;
}

std::string evidence_legend() {
    std::string out = "Evidence:";
    for (const auto& w : gemm::evidence_words) out += fmt::format(" {}: {};", w.name, w.summary);
    out.back() = '.';
    return out;
}

// A short form for a narrow column, "e32 e16 u16"; the legend below the table explains it.
std::string short_scales(const accumulator& m) {
    if (m.scales == 0) return "-";
    return words_in(gemm::operand_scales, m.scales, " ", [](const gemm::operand_scale& s) {
        return fmt::format("{}{}", s.format.substr(0, 1), s.block);
    });
}

// "published*" if only some operands are covered.
std::string short_evidence(const accumulator& m) {
    const std::string whole = evidence_text(m);
    return whole.substr(0, whole.find(' ')) + (whole.find(' ') == std::string::npos ? "" : "*");
}

// A row of the description of one model.
report::record fact(std::string_view field, std::string value, std::string meaning) {
    return {{"field", text(field)}, {"value", std::move(value)}, {"meaning", std::move(meaning)}};
}

template <typename T, std::size_t N>
report::record policy(std::string_view field, const std::array<gemm::policy_word<T>, N>& words,
                      T value) {
    const auto& w = word_of(words, value);
    return fact(field, std::string(w.name), std::string(w.summary));
}

std::string operand_meaning(const accumulator& m) {
    return words_in(gemm::operand_words, m.operands, "; ", [](const gemm::operand_word& w) {
        return fmt::format("{}: {}", w.name, w.summary);
    });
}

std::string scale_meaning(const accumulator& m) {
    if (m.scales == 0) return "no block scales";
    if (m.how == gemm::algorithm::grouped) {
        return "the product of two scales, exactly; its exponent aligns the group";
    }
    return gemm::has_steps(m.how) ? "exponents that are added to those of the products"
                                  : "multiplied into the operands";
}

// The meaning of a key's value if it names a policy.
std::string key_meaning(const accumulator& m, const accumulator_key& key) {
    const auto found = [&](const auto& words) {
        for (const auto& w : words) {
            if (w.name == key.get(m)) return fmt::format("{}: {}", key.summary, w.summary);
        }
        return std::string(key.summary);
    };
    if (key.name == "convert") return found(gemm::conversion_words);
    if (key.name == "subnormals") return found(gemm::subnormal_words);
    if (key.name == "underflow") return found(gemm::zero_words);
    if (key.name == "c") return found(gemm::entry_words);
    return std::string(key.summary);
}

// Every model.
report::document accumulators_document() {
    report::document d;
    d.head = pages::document_head("mx.accumulators/1");
    std::vector<report::record> rows;
    for (const accumulator& m : gemm::accumulators()) {
        d.results.push_back(record_of(m));
        rows.push_back({{"chip", chip_text(m)},
                        {"name", text(m.name)},
                        {"operands", operands_text(m)},
                        {"scales", short_scales(m)},
                        {"L", field_text(m, "fused_length")},
                        {"F", field_text(m, "fraction_bits")},
                        {"convert", text(word_of(gemm::conversion_words, m.convert).name)},
                        {"c", field_text(m, "c")},
                        {"evidence", short_evidence(m)}});
    }
    d.sections.push_back(
        {"Accumulator models: how matrix products are added up",
         {{"name", "name"},
          {"operands", "operands"},
          {"scales", "scales"},
          {"L", "L"},
          {"F", "F"},
          {"convert", "rounds"},
          {"c", "c is added"},
          {"evidence", "evidence"}},
         std::move(rows),
         "chip",
         {"L products and the accumulator c are aligned to the largest exponent among them "
          "(at least a floor), cut off F bits below it, added exactly and converted; the result is "
          "the next step's c; 'afterwards': c is added to the result instead; 'ignored': it is "
          "dropped. fp8: e4m3 and e5m2; "
          "fp6: e3m2 and e2m3; fp4: e2m1; fnuz8: "
          "CDNA3's fp8. Scales: e32 and e16 are E8M0 per 32 and per 16 elements, u16 UE4M3 per 16.",
          evidence_legend() + " *: of some pairs of operands; the others are extrapolated.",
          "'mx explain NAME' gives every field and what is known of it; NAME:key=value "
          "changes fields, as in sm90.wgmma.fp8:promote=128. docs/design/gemm.md says what each "
          "model rests on."}});
    return d;
}

// One model, possibly with changed fields, field by field.
report::document accumulator_document(const accumulator& m) {
    report::document d;
    d.head = pages::document_head("mx.accumulator/1");
    d.head.emplace_back("accumulator", record_of(m));
    std::vector<report::record> rows;
    rows.push_back(policy("algorithm", gemm::algorithm_words, m.how));
    rows.push_back(fact("operands", operands_text(m), operand_meaning(m)));
    rows.push_back(policy("intake", gemm::intake_words, m.enters));
    rows.push_back(fact("scales", scales_text(m), scale_meaning(m)));
    for (const accumulator_key& key : gemm::accumulator_keys()) {
        if (key.applies(m.how)) rows.push_back(fact(key.name, key.get(m), key_meaning(m, key)));
    }
    if (!gemm::has_steps(m.how)) {
        rows.push_back(policy("convert", gemm::conversion_words, m.convert));
    }
    rows.push_back(policy("evidence", gemm::evidence_words, m.known_from));
    for (const report::record& r : rows) d.results.push_back(r);
    report::notes notes;
    if (!m.instruction.empty()) {
        notes.push_back(fmt::format("{}, {}.", chip_text(m), m.instruction));
    }
    notes.push_back(fmt::format("What is known: {}.", m.remark));
    d.sections.push_back({to_string(m),
                          {{"field", "field"}, {"value", "value"}, {"meaning", "meaning"}},
                          std::move(rows),
                          {},
                          std::move(notes)});
    return d;
}

}  // namespace

report::document accumulators(const std::vector<std::string>& names) {
    if (names.size() > 1) base::refuse("explain accumulators takes one model");
    return names.empty() ? accumulators_document()
                         : accumulator_document(gemm::parse_accumulator(names.front()));
}

report::document_schema accumulators_schema() {
    report::member_list all;
    all.add(first_members);
    for (const accumulator_key& key : gemm::accumulator_keys()) {
        const std::string_view type =
            key.name == "convert" ? std::string_view(conversion_type) : "string?";
        all.add({key.name, type, key.summary});
    }
    all.add(last_members);
    return report::document_schema("mx.accumulators/1", "mx explain accumulators",
                                   "The models of matrix units.")
        .member({"results", "[#model]", "a model each"})
        .define("model", all);
}

report::document_schema accumulator_schema() {
    constexpr std::array fields{report::member_type{"field", "string", ""},
                                report::member_type{"value", "string", ""},
                                report::member_type{"meaning", "string", ""}};
    return report::document_schema("mx.accumulator/1", "mx explain accumulators MODEL",
                                   "One model of a matrix unit.")
        .member({"accumulator", "@accumulators-1#model", "the model"})
        .member({"results", "[#field]", "its fields in words"})
        .define("field", fields);
}

}  // namespace mx::documents
