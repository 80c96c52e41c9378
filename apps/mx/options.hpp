// SPDX-License-Identifier: Apache-2.0
// Common to all commands: the options of a run, names, refusals. Includes inputs, outputs and exit
// codes, which every command needs.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/mx/commands.hpp"
#include "apps/mx/exit_code.hpp"
#include "apps/mx/inputs.hpp"
#include "apps/mx/outputs.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/engine/control.hpp"

namespace mx::app {

/// --threads, --backend, --verbose, --quiet.
struct run_options {
    int threads = 0;
    std::string backend;  ///< empty: see chosen_backend
    bool verbose = false;
    bool quiet = false;
};
/// All of them; `with_verbose`: for commands that quantize or multiply, which use a backend.
void declare_run(parser& cmd, run_options& run, bool with_verbose = true);
/// One of them. What is declared next is in the group Run, and Output.
void declare_threads(parser& cmd, int& threads);
void declare_quiet(parser& cmd, bool& quiet);

/// Notices of the library, on stderr; with --quiet none.
std::shared_ptr<base::notices> notices_of(const run_options& run);

/// Thread count, backend, cancel flag, progress bar and notices for the library. With --verbose,
/// prints the backend and which of `recipes` another one quantizes. Throws base::error if the
/// requested backend is unknown or unavailable.
engine::run_control control_of(const run_options& run, std::span<const codec::recipe> recipes = {});

/// -o, --output FILE of a converting command.
void declare_destination(parser& cmd, std::string& out, const std::string& what);
/// --max-shard-size, for outputs with an index.
void declare_shard_size(parser& cmd, std::optional<std::uint64_t>& bytes);

using base::refuse;

/// The recipes of --recipe without duplicates (two spellings of one recipe are one); `defaults`
/// without the option.
std::vector<codec::recipe> recipes_of(const std::vector<std::string>& requested,
                                      std::span<const char* const> defaults);

using base::names_of;

/// Refuses: "--round: unknown rounding 'foo'; did you mean 'x'? ...".
[[noreturn]] void unknown_name(std::string_view option, std::string_view what,
                               const std::string& name, const std::vector<std::string_view>& valid);
/// The same unless `name` is one of `valid`.
void require_one_of(std::string_view option, std::string_view what, const std::string& name,
                    const std::vector<std::string_view>& valid);

}  // namespace mx::app
