// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>

#include "libmx/codec/dialect_columns.hpp"
#include "libmx/codec/recipe.hpp"
#include "tests/catch.hpp"

using namespace mx::codec;

TEST_CASE("every dialect answers every question in words, with its evidence") {
    const std::string marks = "RTSDC";
    for (const dialect& d : dialects()) {
        for (const dialect_column& c : dialect_columns()) {
            CAPTURE(d.name, c.name);
            const dialect_answer a = c.answer(d);
            CHECK_FALSE(a.words.word.empty());
            CHECK_FALSE(a.words.meaning.empty());
            CHECK(a.words.word != "other");
            CHECK(marks.find(description_of(a.mark).word) != std::string::npos);
        }
    }
}

TEST_CASE("versions are found by release and by commit, and are named in full") {
    CHECK(find_dialect("torchao@0.15")->version == "0.15.0");
    CHECK(find_dialect("torchao@0.15.0") == find_dialect("torchao@0.15"));
    CHECK(find_dialect("torchao@0.18.0") == find_dialect("torchao@0.18"));
    CHECK(find_dialect("torchao@0.18")->id == dialect_id::torchao_0_18);
    // A commit without a release.
    CHECK(find_dialect("torchao")->version.empty());
    CHECK(find_dialect("torchao@0.19.0") == nullptr);
    CHECK(find_dialect("torchao@36027d8") == find_dialect("torchao"));
    CHECK(find_dialect("microxcaling@7bc4195") == find_dialect("microxcaling"));
    CHECK(find_dialect("torchao@0.16") == nullptr);
    CHECK(find_dialect("torchao@") == nullptr);
    CHECK(find_dialect("ocp@") == nullptr);
    CHECK(to_string(parse_recipe("mxfp4:dialect=torchao@0.15.0")) == "mxfp4:dialect=torchao@0.15");
    CHECK(to_string(parse_recipe("nvfp4:dialect=torchao@36027d8")) == "nvfp4:dialect=torchao");
    for (const dialect& d : dialects()) {
        CAPTURE(d.name);
        // Every older version has a newest one in the list.
        CHECK(find_dialect(family_of(d)) != nullptr);
        CHECK((d.name == family_of(d) || !d.version.empty()));
    }
}

TEST_CASE("the columns of the dialect table have names of their own") {
    std::set<std::string_view> names;
    for (const dialect_column& c : dialect_columns()) {
        CHECK(names.insert(c.name).second);
        CHECK(find_dialect_column(c.name) == &c);
        CHECK(c.question.back() == '?');
    }
    CHECK(find_dialect_column("colour") == nullptr);
}

TEST_CASE("one word of a column has one meaning") {
    for (const dialect_column& c : dialect_columns()) {
        std::set<std::string> words, answers;
        for (const dialect& d : dialects()) {
            const dialect_answer a = c.answer(d);
            if (!a.applies) continue;
            words.insert(std::string(a.words.word));
            answers.insert(std::string(a.words.word) + ": " + std::string(a.words.meaning));
        }
        CAPTURE(c.name);
        CHECK(words.size() == answers.size());
    }
}

TEST_CASE("what a dialect lacks is not answered for it") {
    const auto applies = [](std::string_view dialect, std::string_view column) {
        return find_dialect_column(column)->answer(*find_dialect(dialect)).applies;
    };
    CHECK(applies("fbgemm", "even"));
    CHECK_FALSE(applies("fbgemm", "rceil"));
    CHECK_FALSE(applies("fbgemm", "e4m3_max"));
    CHECK_FALSE(applies("torchao", "integers"));
    CHECK(applies("microxcaling", "integers"));
    CHECK_FALSE(applies("ml_dtypes", "zero_block"));
    CHECK(applies("ml_dtypes", "e8m0"));
    CHECK_FALSE(applies("te", "log2"));
}
