// SPDX-License-Identifier: Apache-2.0
// Declaring and parsing the options of a command. Only cli.cpp includes CLI11: its header takes
// seconds to compile.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class Option;
}

namespace mx::app {

/// An option or argument as help, the man page and docs/reference print it.
struct option_line {
    std::string group;
    std::string spelling;  ///< "-t,--tensor GLOB", "FILE..."
    std::string text;
    bool required = false;
    bool positional = false;
};

/// A declared option, flag or argument. Each member returns the option itself.
class option {
  public:
    explicit option(CLI::Option* of) : of_(of) {}

    option* required();
    /// How many values: exactly `n` words, or `least` to `most`.
    option* expected(int n);
    option* expected(int least, int most);
    /// Splits a value at `c`.
    option* delimiter(char c);
    option* needs(option* other);
    option* excludes(option* other);

    /// T: int, std::uint64_t or double.
    template <class T>
    option* in_range(T least, T most);
    option* one_of(std::initializer_list<int> values);
    option* one_of(std::initializer_list<std::string> values);
    /// Refuses NaN and Inf, which pass every range.
    option* finite();
    /// Refuses what an unsigned number would wrap around (-1) or cut.
    option* not_negative();
    /// Refuses an empty name of an output, which would mean none.
    option* file_name();
    /// Takes 4GiB or 500MB for a number of bytes; units of 1000 and of 1024 differ.
    option* size_in_bytes();

  private:
    friend class parser;
    /// This one, once CLI11's has changed.
    option* after(CLI::Option*) { return this; }

    CLI::Option* of_;
};

/// The command line of one command.
class parser {
  public:
    parser();
    ~parser();
    parser(const parser&) = delete;
    parser& operator=(const parser&) = delete;

    /// The heading that help lists the options under which are declared from here on; "" hides
    /// them.
    void group(const std::string& name);
    /// `spelling`: "-r,--recipe RECIPE", the value's word in help last, or "FILE" for an argument.
    /// What is parsed goes into `value`, which has to live as long as the parser; a list gets one
    /// value for each occurrence of an option, and every word that is left for an argument. The
    /// types of values are listed in cli.cpp.
    template <class T>
    option* add_option(const std::string& spelling, T& value, const std::string& text);
    option* add_flag(const std::string& names, bool& value, const std::string& text);
    /// What parse() was given, without the options named in `but`: one spelling whatever the order
    /// and the names used.
    std::vector<std::string> given(const std::vector<std::string>& but) const;
    /// Adds that to `arguments`, which has to live as long as the parser, when it is parsed.
    void keep_arguments(std::vector<std::string>& arguments, std::vector<std::string> but);
    /// Whether an option of this name (with dashes) is declared.
    bool has_option(const std::string& name) const;
    /// A declared option by one of its names.
    option* get_option(const std::string& name);

    void name(const std::string& name);
    void set_help_flag(const std::string& names, const std::string& text);
    void description(const std::string& text);
    void examples(const std::string& lines);

    std::string description() const;
    std::string examples() const;
    /// What is not hidden, in the order of declaration.
    std::vector<option_line> options() const;

    /// False when help is asked for. Throws base::error (usage) with one line: what is wrong.
    bool parse(int argc, char** argv);
    /// Settings (settings.hpp) stand for options that were not given. Throws as setting_of() does,
    /// and base::error (usage) for a value that its option does not take.
    void take_settings();

  private:
    struct state;
    option* keep(CLI::Option* of);

    std::unique_ptr<state> state_;
};

/// Names and values of a file of settings in TOML; `path` is named in errors. Throws base::error
/// (input) where it is no such file.
std::vector<std::pair<std::string, std::string>> parse_settings_file(std::istream& file,
                                                                     const std::string& path);

}  // namespace mx::app
