// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/review_page.hpp"

#include <algorithm>
#include <utility>

#include "apps/mx/parts.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/files/file_digest.hpp"
#include "libmx/io/piped_file.hpp"
#include "libmx/io/remote.hpp"
#include "libmx/io/spool.hpp"

namespace mx::app {

void declare_review(parser& cmd, judging_options& judging, bool& summary) {
    declare_judging(cmd, judging);
    declare_summary(cmd, summary);
}

void declare_summary(parser& cmd, bool& summary) {
    cmd.group("Output", help_page::outputs);
    cmd.add_flag("--summary", summary,
                 "the verdict in one line, for chat and CI, instead of the tables");
    cmd.group("Output");
}

void declare_measured_outputs(parser& cmd, documents::measuring_options& o, measured_outputs& to,
                              std::string_view command) {
    declare_outputs(cmd, to.out);
    cmd.group("Output", help_page::outputs);
    cmd.add_flag("--sha256", to.sha256,
                 "also the SHA-256 of the inputs in JSON; --html implies it");
    declare_review(cmd, o.judging, o.summary);
    declare_parts(cmd, o.parts, command, true);
}

void declare_groups(parser& cmd, std::vector<std::string>& groups) {
    cmd.group("Tensors", help_page::inputs);
    cmd.add_option("--group BY", groups,
                   "one record for several tensors, with the worst of them named: a pattern, as "
                   "'experts.*', for names that differ there alone; layer,role or role for all "
                   "that no pattern takes; repeatable");
    cmd.group("Input");
}

void print_summary(const std::string& summary, const output_options& out) {
    if (std::ranges::find(out.paths, "-") != out.paths.end()) return;
    print(base::printable(summary.empty() ? "no tensor was measured" : summary) + "\n");
    finish_stdout();
}

measured_run::measured_run(documents::measuring_options& o, const measured_outputs& to,
                           std::vector<std::string> more)
    : options_(o), to_(to), more_(std::move(more)) {
    check_part_outputs(o.parts, to.out);
    if (!o.parts.shard.empty() && std::ranges::any_of(o.in.files, io::is_pipe)) {
        refuse(
            "--shard: a pipe is read once, and mx merge reads the model again; save it to a file");
    }
    if (!o.parts.shard.empty() && o.summary) refuse("--summary: of all parts; give it to mx merge");
    o.page = !output_options(to.out).path_of("html").empty();
    if (to.sha256) {
        for (const std::string& file : o.in.files) {
            if (!io::is_remote(file)) continue;
            refuse("--sha256: the digest of a remote file takes all of its bytes; fetch it first");
        }
    }
    if (to.sha256 || o.page) {
        // The page omits the digest of a remote file.
        o.digest = [](const std::string& path) {
            return io::is_remote(path) ? std::string() : io::sha256_of(path, &interrupted());
        };
    }
}

documents::run_environment measured_run::environment() {
    const auto open = [this]() -> documents::opened_tensors {
        outputs_.emplace(to_.out, options_.in.files, more_);
        model_.emplace(open_inputs(options_.in, outputs_->paths()));
        for (const engine::input_file& f : model_->files()) {
            if (!to_.run.verbose || !io::is_pipe(f.path)) continue;
            remark(fmt::format("{}: its {} bytes are read from a temporary file in {}", f.path,
                               f.bytes, io::temporary_directory()));
        }
        return {model_->select(options_.in.globs), model_->files()};
    };
    const auto control = [this](std::span<const codec::recipe> recipes) {
        return control_of(to_.run, recipes);
    };
    return {open, control};
}

void measured_run::finish(const documents::measured& m) {
    outputs_->finish(m.document, to_.run.quiet || options_.summary, {{"html", &m.review.page}});
    if (options_.summary && !to_.run.quiet) print_summary(m.review.summary, to_.out);
}

}  // namespace mx::app
