// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/options.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "apps/mx/backends.hpp"
#include "apps/mx/progress.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/joined.hpp"

namespace mx::app {

void declare_run(parser& cmd, run_options& run, bool with_verbose) {
    declare_threads(cmd, run.threads);
    cmd.group("Run", help_page::outputs);
    cmd.add_option("--backend NAME", run.backend,
                   fmt::format("one of: {}", base::joined(names_of(codec::backends()), ", ")));
    if (with_verbose) {
        cmd.add_flag("--verbose", run.verbose,
                     "print on stderr which backend runs, and what another one computes instead");
    }
    declare_quiet(cmd, run.quiet);
}

void declare_threads(parser& cmd, int& threads) {
    cmd.group("Run", help_page::outputs);
    cmd.add_option("--threads N", threads, "worker threads; the output does not depend on it")
        ->in_range(1, 4096);
    cmd.group("Run");
}

void declare_quiet(parser& cmd, bool& quiet) {
    cmd.group("Run", help_page::outputs);
    cmd.add_flag("-q,--quiet", quiet, "no table and no progress; errors only");
    cmd.group("Output");
}

std::shared_ptr<base::notices> notices_of(const run_options& run) {
    return std::make_shared<base::notices>(
        run.quiet && !run.verbose ? std::function<void(const std::string&)>() : remark,
        run.verbose);
}

engine::run_control control_of(const run_options& run, std::span<const codec::recipe> recipes) {
    engine::run_control control;
    control.threads = run.threads;
    control.backend = &chosen_backend(run.backend);
    control.cancel = &interrupted();
    control.on_progress = progress_bar(run.quiet);
    control.notices = notices_of(run);
    if (run.verbose) print_backend(*control.backend, run.threads, recipes);
    return control;
}

void declare_destination(parser& cmd, std::string& out, const std::string& what) {
    cmd.group("Output");
    cmd.add_option("-o,--output OUT", out, what)->required()->file_name();
}

void declare_shard_size(parser& cmd, std::optional<std::uint64_t>& bytes) {
    cmd.add_option("--max-shard-size SIZE", bytes,
                   "bytes of data in a file of an output with an index, e.g. 500MB; default 5GB")
        ->size_in_bytes();
}

std::vector<codec::recipe> recipes_of(const std::vector<std::string>& requested,
                                      std::span<const char* const> defaults) {
    return codec::parse_block_recipes(
        requested.empty() ? std::vector<std::string>(defaults.begin(), defaults.end()) : requested);
}

void unknown_name(std::string_view option, std::string_view what, const std::string& name,
                  const std::vector<std::string_view>& valid) {
    refuse("{}: {}", option, base::unknown(what, name, valid));
}

void require_one_of(std::string_view option, std::string_view what, const std::string& name,
                    const std::vector<std::string_view>& valid) {
    if (std::ranges::find(valid, name) == valid.end()) unknown_name(option, what, name, valid);
}

}  // namespace mx::app
