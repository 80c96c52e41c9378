// SPDX-License-Identifier: Apache-2.0
// docs/design/dialects.md, made from the lists of dialects, columns and disagreements.
#include <set>

#include "apps/mx/manual.hpp"
#include "libmx/codec/dialect_columns.hpp"
#include "libmx/conformance/disagreements.hpp"

namespace mx::app {
namespace {

using codec::dialect;
using codec::dialect_column;

std::string marks() {
    return lines_of(codec::evidence_marks(), [](codec::evidence e) {
        const codec::trait_description w = codec::description_of(e);
        return fmt::format("| {} | {} |", w.word, plain(w.meaning));
    });
}

std::string offers_text() {
    return lines_of(codec::dialects(), [](const dialect& d) {
        return fmt::format("| **{}** | {} | {} | {} | {} | {} | {} |", plain(d.name),
                           plain(d.summary), d.blocks ? plain(d.rules) : "(conversions only)",
                           plain(d.roundings), d.elements.empty() ? "all" : plain(d.elements),
                           plain(d.source), plain(d.verified_by));
    });
}

std::string answers() {
    std::string out = "| dialect |";
    std::string line = "|---|";
    for (const dialect_column& c : codec::dialect_columns()) {
        out += fmt::format(" {} |", plain(c.title));
        line += "---|";
    }
    out += "\n" + line + "\n";
    return out + lines_of(codec::dialects(), [](const dialect& d) {
               std::string row = fmt::format("| **{}** |", plain(d.name));
               for (const dialect_column& c : codec::dialect_columns()) {
                   const codec::dialect_answer a = c.answer(d);
                   const std::string word(a.words.word);
                   row += fmt::format(" {} {} |", plain(a.applies ? word : "(" + word + ")"),
                                      codec::description_of(a.mark).word);
               }
               return row;
           });
}

std::string words() {
    return lines_of(codec::dialect_columns(), [](const dialect_column& c) {
        std::string out = fmt::format("\n**{}**: {}\n", plain(c.title), plain(c.question));
        std::set<std::string_view> said;
        for (const dialect& d : codec::dialects()) {
            const codec::dialect_answer a = c.answer(d);
            if (!a.applies || !said.insert(a.words.word).second) continue;
            out += fmt::format("\n- *{}*: {}", plain(a.words.word), plain(a.words.meaning));
        }
        return out;
    });
}

std::string question(const conformance::disagreement& d, const conformance::respondent& who) {
    const std::string_view preposition = d.kind == conformance::probe::row ? " under" : " to";
    const std::string_view what = d.kind == conformance::probe::e8m0 ? "e8m0" : who.question;
    return fmt::format("**{}**{} `{}`", plain(who.dialect), preposition, what);
}

std::string disagreements() {
    return lines_of(conformance::disagreements(), [](const conformance::disagreement& d) {
        return fmt::format("| {} | {}: {} | {} | {} | {} | {} | {} |", d.number, plain(d.title),
                           plain(d.story), plain(conformance::input_text(d)), question(d, d.a),
                           plain(conformance::to_string(conformance::ask(d, d.a))),
                           question(d, d.b),
                           plain(conformance::to_string(conformance::ask(d, d.b))));
    });
}

}  // namespace

std::string dialects_page() {
    return filled(dialects_md(), fmt::arg("marks", marks()), fmt::arg("offers", offers_text()),
                  fmt::arg("answers", answers()), fmt::arg("disagreements", disagreements()),
                  fmt::arg("words", words()));
}

}  // namespace mx::app
