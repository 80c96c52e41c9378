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

#include "libmx/report/command_line.hpp"

namespace CLI {
class Option;
}

namespace mx::app {

/// Where help describes an option: with its command, or once for all that have it (help_topics).
enum class help_page : std::uint8_t { command, inputs, outputs, training };

/// An option or argument as printed by help, the man page and docs/reference.
struct option_line {
    std::string group;
    std::string spelling;  ///< "-t,--tensor GLOB", "FILE..."
    std::string text;
    bool required = false;
    bool positional = false;
    help_page page = help_page::command;
};

/// A declared option, flag or argument. Each member returns the option itself.
class option {
  public:
    explicit option(CLI::Option* of) : of_(of) {}

    option* required();
    /// The number of values: exactly `n` words, or `least` to `most`.
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
    /// Refuses NaN and Inf, which pass range checks.
    option* finite();
    /// Refuses values that an unsigned number would wrap around (-1) or truncate.
    option* not_negative();
    /// Refuses an empty output name, which would mean no output.
    option* file_name();
    /// Accepts a number of bytes such as 4GiB or 500MB; units of 1000 and of 1024 differ.
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

    /// The help heading of the options declared from here on, and where it is; "" hides them.
    void group(const std::string& name, help_page page = help_page::command);
    /// `spelling`: "-r,--recipe RECIPE" with the value's word in help last, or "FILE" for an
    /// argument. The parsed value is stored in `value`, which must outlive the parser; a list gets
    /// one value per occurrence of an option, or all remaining words for an argument. The value
    /// types are listed in cli.cpp.
    template <class T>
    option* add_option(const std::string& spelling, T& value, const std::string& text);
    option* add_flag(const std::string& names, bool& value, const std::string& text);
    /// The arguments of parse() without the options named in `but`, in one spelling for any order
    /// and any of the names used.
    std::vector<std::string> given(const std::vector<std::string>& but) const;
    /// Appends these to the options and files of `line`, which must outlive the parser, when
    /// parsing.
    void keep_arguments(report::command_line& line, std::vector<std::string> but);
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
    /// The options that are not hidden, in the order of declaration.
    std::vector<option_line> options() const;

    /// Returns false if help is requested. Throws base::error (usage) with one line.
    bool parse(int argc, char** argv);
    /// Applies settings (settings.hpp) to options that were not given. Throws as setting_of() does,
    /// and base::error (usage) for a value that its option does not accept.
    void take_settings();

  private:
    struct state;
    option* keep(CLI::Option* of);
    option* keep_declared(CLI::Option* of);

    std::unique_ptr<state> state_;
};

/// The names and values in a TOML file of settings; errors contain `path`. Throws base::error
/// (input) if it is not such a file.
std::vector<std::pair<std::string, std::string>> parse_settings_file(std::istream& file,
                                                                     const std::string& path);

}  // namespace mx::app
