// SPDX-License-Identifier: Apache-2.0
// Commands that can be pasted: a command line as data, its text for sh, and what a document states
// about the command that measured its results.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/report/declared.hpp"

namespace mx::report {

/// A word of a command line, quoted where sh needs it. One line of printable text, whatever bytes
/// the word has.
std::string shell_word(const std::string& text);

/// An option by its long name without dashes; a flag has no value.
struct given_option {
    std::string name;
    std::optional<std::string> value = {};

    bool operator==(const given_option&) const = default;
};

/// The one place from which commands are printed.
struct command_line {
    std::string command;             ///< "analyze"
    std::vector<std::string> files;  ///< as named: files, directories, patterns, addresses
    std::string tensor = {};         ///< the argument after the file; empty: none
    std::vector<given_option> options = {};

    /// Replaces the values of an option; without values, removes it.
    void set(std::string_view name, const std::vector<std::string>& values);
    /// "mx analyze FILE --transpose '*' -r mxfp4". Options follow in their order.
    std::string text() const;

    bool operator==(const command_line&) const = default;
};

/// The options and files of a command line, for a parser: --name=value (--name=true for a flag, so
/// that no word becomes the value of the one before), and ./ before a file that begins with '-'.
std::vector<std::string> arguments_of(const command_line& line);

/// The command that measured the results of a document (mx.analysis/1): the members `inputs` and
/// `given`.
struct given_command {
    command_line line;  ///< command, files, and the options that decide which values are measured
    std::map<std::string, std::string> named;  ///< by path of a file that was read: its argument

    /// The argument by which a file was named; the file itself if that is not known.
    const std::string& argument_of(const std::string& file) const;
};

/// Null for a document without `given`, of arrays in memory, and of files whose names JSON cannot
/// hold: no command repeats these.
std::shared_ptr<const given_command> given_in(const record& head);

/// The options in the member `given`; of arrays in memory, too.
std::vector<given_option> options_in(const record& head);

/// The member `given`: the command and its options as data.
record given_record(const command_line& line);
/// One of these options.
inline constexpr std::array option_members = std::to_array<declared<given_option>>({
    {"option", "string", "its long name without dashes", [](auto& o) { return o.name; }},
    {"value", "string", "flags have none", [](auto& o) { return o.value; }, false},
});

/// A path without the folders before its last part, which may end in a slash.
std::string last_part(const std::string& path);

}  // namespace mx::report
