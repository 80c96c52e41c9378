// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/dialect_page.hpp"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "apps/mx/manual_text.hpp"
#include "libmx/codec/dialect_columns.hpp"
#include "libmx/codec/disagreements.hpp"

namespace mx::app {
namespace {

using codec::dialect;
using codec::dialect_column;

constexpr std::string_view introduction =
    "Two programs that both claim MXFP4 can disagree in every corner: which scale a block gets "
    "next to a power of two, what a NaN does to its neighbours, where a tie goes. A *dialect* is "
    "one implementation's answer to all of these questions, at one commit. `dialect=NAME` in a "
    "recipe follows it bit for bit; `mx dialects NAME` prints one, `mx dialects A B` what two "
    "answer differently.\n\n"
    "Each answer carries a mark that says how it is known:\n\n";

std::string marks() {
    std::string out = "| mark | meaning |\n|---|---|\n";
    for (const codec::evidence e : codec::evidence_marks()) {
        const codec::trait_words w = codec::words_of(e);
        out += fmt::format("| {} | {} |\n", w.word, plain(w.meaning));
    }
    return out;
}

std::string offers() {
    std::string out =
        "\n## What each one has\n\nThe first rule and the first rounding are the defaults of a "
        "recipe that names the dialect.\n\n"
        "| dialect | what it is | scale rules | roundings | elements | source | verified by |\n"
        "|---|---|---|---|---|---|---|\n";
    for (const dialect& d : codec::dialects()) {
        out += fmt::format("| **{}** | {} | {} | {} | {} | {} | {} |\n", plain(d.name),
                           plain(d.summary), d.blocks ? plain(d.rules) : "(conversions only)",
                           plain(d.roundings), d.elements.empty() ? "all" : plain(d.elements),
                           plain(d.source), plain(d.verified_by));
    }
    return out;
}

std::string answers() {
    std::string out =
        "\n## What each one does\n\nOne row a dialect, one column a question; the words are "
        "explained below. Brackets: it has nothing that the question is about.\n\n| dialect |";
    std::string line = "|---|";
    for (const dialect_column& c : codec::dialect_columns()) {
        out += fmt::format(" {} |", plain(c.title));
        line += "---|";
    }
    out += "\n" + line + "\n";
    for (const dialect& d : codec::dialects()) {
        out += fmt::format("| **{}** |", plain(d.name));
        for (const dialect_column& c : codec::dialect_columns()) {
            const codec::dialect_answer a = c.answer(d);
            const std::string word(a.words.word);
            out += fmt::format(" {} {} |", plain(a.applies ? word : "(" + word + ")"),
                               codec::words_of(a.mark).word);
        }
        out += "\n";
    }
    return out;
}

std::string words() {
    std::string out = "\n## The questions and the words\n";
    for (const dialect_column& c : codec::dialect_columns()) {
        out += fmt::format("\n**{}**: {}\n\n", plain(c.title), plain(c.question));
        std::set<std::string_view> said;
        for (const dialect& d : codec::dialects()) {
            const codec::dialect_answer a = c.answer(d);
            if (!a.applies || !said.insert(a.words.word).second) continue;
            out += fmt::format("- *{}*: {}\n", plain(a.words.word), plain(a.words.meaning));
        }
    }
    return out;
}

std::string question(const codec::disagreement& d, const codec::respondent& who) {
    const std::string_view asked = d.kind == codec::probe::row ? " under" : " to";
    const std::string_view what = d.kind == codec::probe::e8m0 ? "e8m0" : who.question;
    return fmt::format("**{}**{} `{}`", plain(who.dialect), asked, what);
}

std::string disagreements() {
    std::string out =
        "\n## Disagreements\n\nEach row is one input that two implementations answer differently. "
        "The answers were made by running this program when the page was made, and the tests hold "
        "them against what was seen of the implementations. Of a row of a tensor the last block "
        "answers, with its scale and its first element; numbers in parentheses are float32 bits.\n"
        "\n| | what | input | asked | answer | asked | answer |\n"
        "|---:|---|---|---|---|---|---|\n";
    for (const codec::disagreement& d : codec::disagreements()) {
        out += fmt::format("| {} | {}: {} | {} | {} | {} | {} | {} |\n", d.number, plain(d.title),
                           plain(d.story), plain(codec::input_words(d)), question(d, d.a),
                           plain(codec::to_string(codec::ask(d, d.a))), question(d, d.b),
                           plain(codec::to_string(codec::ask(d, d.b))));
    }
    return out;
}

}  // namespace

std::string dialect_page() {
    return fmt::format("{}# Dialects\n\n{}{}{}{}{}{}", made_by, introduction, marks(), offers(),
                       answers(), disagreements(), words());
}

}  // namespace mx::app
