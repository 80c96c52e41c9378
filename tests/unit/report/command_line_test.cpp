// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/command_line.hpp"

#include <array>
#include <cstdio>
#include <string>

#include "libmx/base/status.hpp"
#include "tests/catch.hpp"

using namespace mx::report;

namespace {

// What sh makes of a word.
std::string in_sh(const std::string& word) {
    const std::string command = "printf '%s.' " + word;
    std::string out;
    std::array<char, 256> buffer{};
    FILE* const sh = ::popen(command.c_str(), "r");
    REQUIRE(sh != nullptr);
    while (std::fgets(buffer.data(), buffer.size(), sh) != nullptr) out += buffer.data();
    ::pclose(sh);
    REQUIRE(out.ends_with('.'));
    return out.substr(0, out.size() - 1);
}

command_line plain() { return {"analyze", {"model"}, {}, {{"raw"}, {"transpose", "*"}}}; }

}  // namespace

TEST_CASE("a quoted word is one printable line, and sh reads it back") {
    for (const std::string& text :
         {std::string("plain-word_1.2/3:=,+@%"), std::string(), std::string("two words"),
          std::string("it's"), std::string("a*b?[c]"), std::string("$HOME `x` \\ \"q\" !"),
          std::string("two\nlines"), std::string("\nends\n\n"), std::string("tab\t%d \\n\n"),
          std::string("\xe9 latin"), std::string("\xe2\x80\xae rtl"), std::string("\x1b[31m'"),
          std::string("\xe5\xb1\xa4 #;&|<>~"), std::string("1\n2")}) {
        CAPTURE(text);
        const std::string word = shell_word(text);
        CHECK(word == mx::base::printable(word));
        CHECK(in_sh(word) == text);
    }
    CHECK(shell_word("a/b.safetensors") == "a/b.safetensors");
    CHECK(shell_word("it's") == "'it'\\''s'");
    CHECK(shell_word("two\nlines") == "\"$(printf 'two\\012lines')\"");
}

TEST_CASE("a command names files first, then its options in their order") {
    CHECK(plain().text() == "mx analyze model --raw --transpose '*'");
    command_line line = plain();
    line.set("recipe", {"mxfp4", "nvfp4:scale=search"});
    line.set("raw", {});
    CHECK(line.text() == "mx analyze model --transpose '*' -r mxfp4 -r nvfp4:scale=search");
    line.set("recipe", {"mxfp8"});
    CHECK(line.text() == "mx analyze model --transpose '*' -r mxfp8");
    // Results that others wrote state commands and options.
    CHECK(command_line{"analyze; x", {"a b"}, {}, {{"raw`x`"}, {"a $b", "c d"}}}.text() ==
          "mx 'analyze; x' 'a b' '--raw`x`' '--a $b' 'c d'");
}

TEST_CASE("words that begin like options are not taken for them") {
    CHECK(command_line{"analyze", {"-x", "-", "--", "a"}}.text() == "mx analyze ./-x - ./-- a");
    CHECK(command_line{"analyze", {"a"}, {}, {{"tensor", "-w*"}}}.text() ==
          "mx analyze a '--tensor=-w*'");
    CHECK(command_line{"show", {"a"}, "-w", {{"recipe", "mxfp4"}}}.text() ==
          "mx show a -r mxfp4 -- -w");
    CHECK(command_line{"show", {"a"}, "w x"}.text() == "mx show a 'w x'");
}

TEST_CASE("a document states the command that measured it") {
    const auto input = [](const std::string& path, const std::string& given) {
        record r{{"path", path}, {"bytes", std::int64_t{1}}};
        if (!given.empty()) r.emplace_back("given", given);
        return r;
    };
    record head{{"inputs", list{input("m/1", "m"), input("m/2", "m"), input("b", "")}}};
    CHECK(given_in(head) == nullptr);  // of another program
    command_line line = plain();
    head.emplace_back("given", given_record(line));
    const auto given = given_in(head);
    REQUIRE(given != nullptr);
    line.files = {"m", "b"};
    CHECK(given->line == line);
    CHECK(given->argument_of("m/2") == "m");
    CHECK(given->argument_of("b") == "b");
    CHECK(given->argument_of("c") == "c");
    // A name that is not UTF-8, as read from JSON.
    CHECK(given_in({{"inputs", list{input("latin-\xef\xbf\xbd", "")}},
                    {"given", given_record(line)}}) == nullptr);
    // Arrays in memory.
    CHECK(given_in({{"inputs", list{}}, {"given", given_record(line)}}) == nullptr);
    // Nothing in a file is trusted.
    CHECK(given_in({{"inputs", list{std::int64_t{1}}},
                    {"given", record{{"options", list{std::string("x"), record{}}}}}}) != nullptr);
}

TEST_CASE("the last part of a path is its name") {
    CHECK(last_part("a/b/c.safetensors") == "c.safetensors");
    CHECK(last_part("a/model/") == "model");
    CHECK(last_part("model//") == "model");
    CHECK(last_part("model") == "model");
    CHECK(last_part("/") == "/");
    CHECK(last_part("").empty());
}
