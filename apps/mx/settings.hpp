// SPDX-License-Identifier: Apache-2.0
// THE LIST of settings, which a user sets once in the environment or in a file. No figure and no
// byte of an output depends on them: options that affect results exist on the command line only, so
// that a command gives the same results everywhere.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace mx::app {

struct setting {
    std::string_view name;  ///< in the file; with "--" in front the option that goes before it
    std::string_view variable;
    std::string_view text;
};

inline constexpr std::array settings{
    setting{"backend", "MX_BACKEND", "what quantizes: a name that mx version lists"},
    setting{"threads", "MX_THREADS", "worker threads; else OMP_NUM_THREADS, else every processor"},
    setting{"color", "MX_COLOR", "auto, always or never: colours of headings, verdicts and risks"},
    setting{"pager", "MX_PAGER", "what long help is shown with; cat or nothing: without"},
};

/// Variables that other programs use as well.
struct shared_variable {
    std::string_view name;
    std::string_view text;
};
inline constexpr std::array shared_variables{
    shared_variable{"NO_COLOR", "not empty: no colours, unless --color or MX_COLOR asks for them"},
    shared_variable{"CLICOLOR_FORCE", "neither empty nor 0: colours into files and pipes as well"},
    shared_variable{"COLUMNS", "width of tables and help, in place of the terminal's"},
    shared_variable{"PAGER", "the pager where MX_PAGER is not set; less without both"},
    shared_variable{"TMPDIR", "folder of temporary files (/tmp)"},
    shared_variable{"OMP_NUM_THREADS", "worker threads where nothing of mx says how many"},
};

/// The settings file: NAME = VALUE per line, # for comments (TOML).
inline constexpr std::string_view settings_file_text =
    "$MX_CONFIG, else $XDG_CONFIG_HOME/mx/config.toml, else ~/.config/mx/config.toml; an empty "
    "MX_CONFIG means none";

struct setting_value {
    std::string value;
    std::string origin;  ///< "MX_THREADS", or "PATH: threads"
};

/// The value from the environment, else from the file. Throws base::error: input if the file named
/// by MX_CONFIG cannot be read or is not a settings file, usage for an unknown name.
std::optional<setting_value> setting_of(std::string_view name);

/// An environment variable; empty if it is not set.
std::string environment(std::string_view name);

}  // namespace mx::app
