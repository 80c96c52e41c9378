// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "apps/mx/commands/watch_log.hpp"
#include "apps/mx/commands/watch_reaction.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/glob.hpp"
#include "libmx/base/joined.hpp"
#include "libmx/base/natural_order.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/parsed.hpp"
#include "libmx/documents/watch.hpp"
#include "libmx/engine/checkpoints.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/json_line.hpp"

namespace mx::app {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr std::size_t warnings_shown = 5;
// Delay between the two checks of --once for files whose format does not show completeness.
constexpr milliseconds second_look{1000};
// The number of earlier lines that rules use.
constexpr std::size_t lines_back = 2;

struct watch_command {
    documents::watch_options options;
    std::vector<std::string> paths;
    std::vector<std::string> names;
    std::string every = "60s";
    bool once = false;
    std::optional<std::uint64_t> until;
    std::string log, prometheus, exec;
    run_options run;
};

// "90", "90s", "5m", "2h".
milliseconds duration_of(const std::string& text) {
    std::string_view number = text;
    double unit = 1;
    for (const auto& [letter, seconds] :
         {std::pair('s', 1.0), std::pair('m', 60.0), std::pair('h', 3600.0)}) {
        if (!number.ends_with(letter)) continue;
        unit = seconds;
        number.remove_suffix(1);
        break;
    }
    const auto n = base::parsed<double>(number);
    if (!n || !(*n * unit >= 0.01) || !(*n * unit <= 1e7)) {
        refuse("--every {}: give a time such as 30s, 5m or 1h", text);
    }
    return milliseconds(static_cast<std::int64_t>(*n * unit * 1000));
}

void wait(milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
        base::stop_if(&interrupted());
        std::this_thread::sleep_for(std::min(time, milliseconds(50)));
    }
}

documents::opened_dump open_dump(const std::string& path) {
    engine::view_request views;
    views.vectors = true;  // gains are vectors, even with additional axes of length 1
    const auto model =
        std::make_shared<const engine::model>(std::vector{path}, io::open_options(), views);
    return {{model, &model->reader()}, model->files()};
}

// "2 norms", or "2 tensors" if some have another role.
std::string checked_in(const report::record& line) {
    std::set<std::string> tensors;
    bool norms = true;
    for (const report::value& v : *report::member<report::list>(line, "results")) {
        const auto& r = std::get<report::record>(v);
        tensors.insert(report::text_of(r, "tensor"));
        norms = norms && report::text_of(r, "role") == "norm";
    }
    return report::plural(tensors.size(), norms ? "norm" : "tensor");
}

class watch_run {
  public:
    explicit watch_run(const watch_command& o)
        : options_(o),
          watcher_(o.options),
          control_(control_of(o.run, watcher_.recipes())),
          log_(o.log == "-" ? "" : o.log) {
        std::error_code ignored;
        if (o.paths.size() == 1 && fs::is_directory(o.paths.front(), ignored)) {
            folder_ = o.paths.front();
        }
        done_.insert(log_.names().begin(), log_.names().end());
    }

    int run() {
        // A run that was killed behind its last line may not have written these figures.
        if (const auto last = log_.last()) put_prometheus(log_.names().back(), *last);
        if (folder_.empty()) {
            go_through_list();
        } else if (options_.once) {
            if (look_through_folder()) {
                wait(second_look);
                look_through_folder();
            }
            report_incomplete();
        } else {
            const milliseconds every = duration_of(options_.every);
            while (true) {
                look_through_folder();
                if (is_over()) break;
                report_stalled();
                wait(every);
            }
        }
        return broken_ ? exit_code::difference : exit_code::fine;
    }

  private:
    // The state of a checkpoint at the last check.
    struct seen {
        engine::checkpoint_look look;
        bool unchanged = false;  // since the previous check
        bool told = false;
        bool refused = false;
    };

    bool is_over() const {
        if (broken_ && options_.exec.empty()) return true;
        return options_.until && std::ranges::any_of(done_, [&](const std::string& name) {
                   return engine::step_in(name) >= options_.until;
               });
    }

    std::string path_of(const std::string& name) const {
        return folder_.empty() ? name : (fs::path(folder_) / name).string();
    }

    // Whether a checkpoint needs a second check.
    bool look_through_folder() {
        bool pending = false;
        for (const std::string& name : engine::checkpoints_in(folder_)) {
            const auto matches = [&](const std::string& g) { return base::glob_match(g, name); };
            if (done_.contains(name) ||
                !(options_.names.empty() || std::ranges::any_of(options_.names, matches))) {
                continue;
            }
            base::stop_if(&interrupted());
            engine::checkpoint_look look = engine::look_at(path_of(name));
            seen& s = seen_[name];
            s.unchanged = s.look.traces == look.traces && s.look.missing == look.missing;
            s.look = std::move(look);
            if (!s.look.missing.empty() || (s.refused && s.unchanged)) continue;
            if (!s.look.sealed && !s.unchanged) {
                pending = true;
                continue;
            }
            take(name, s);
        }
        return pending;
    }

    // In a folder, unreadable checkpoints are left out, and changing ones are deferred.
    void take(const std::string& name, seen& s) {
        const std::vector<report::record> earlier = log_.before(name, lines_back);
        report::record line;
        try {
            line = measure(name, earlier);
        } catch (const base::error& e) {
            if (e.kind() != base::error_kind::input) throw;
            s.refused = true;
            if (fs::exists(path_of(name))) remark(name + " is left out: " + e.what());
            return;
        }
        if (engine::look_at(path_of(name)).traces != s.look.traces) {
            s.look.traces.clear();
            return;
        }
        put(name, line);
        seen_.erase(name);
    }

    void go_through_list() {
        std::vector<std::string> names = options_.paths;
        std::ranges::sort(names, base::naturally_less);
        for (const std::string& name : names) {
            if (!done_.contains(name)) put(name, measure(name, log_.before(name, lines_back)));
        }
    }

    report::record measure(const std::string& name,
                           const std::vector<report::record>& earlier) const {
        const documents::named_checkpoint now{name, open_dump(path_of(name))};
        std::optional<documents::named_checkpoint> before;
        if (!earlier.empty()) {
            const std::string last = report::text_of(earlier.back(), "checkpoint");
            try {
                before = documents::named_checkpoint{last, open_dump(path_of(last))};
            } catch (const base::error&) {  // deleted since
            }
        }
        return watcher_.look(now, before ? &*before : nullptr, earlier, control_);
    }

    // The log first: the command may read it.
    void put(const std::string& name, const report::record& line) {
        log_.append(line);
        done_.insert(name);
        if (options_.log == "-") print(report::json_line(line) + "\n");
        put_prometheus(name, line);
        const auto& warnings = *report::member<report::list>(line, "warnings");
        if (!options_.run.quiet && options_.log != "-") {
            print(
                fmt::format("{}: {} checked, {}\n", base::printable(name), checked_in(line),
                            warnings.empty() ? "ok" : report::plural(warnings.size(), "warning")));
        }
        finish_stdout();
        for (std::size_t i = 0; i < std::min(warnings_shown, warnings.size()); ++i) {
            remark(fmt::format("{}: {}", name,
                               report::text_of(std::get<report::record>(warnings[i]), "message")));
        }
        if (warnings.size() > warnings_shown) {
            remark(fmt::format("{}: and {} more", name, warnings.size() - warnings_shown));
        }
        if (warnings.empty()) return;
        broken_ = true;
        if (options_.exec.empty()) return;
        const std::string failure = run_reaction(options_.exec, line);
        if (!failure.empty()) remark(failure);
    }

    void put_prometheus(const std::string& name, const report::record& line) const {
        if (options_.prometheus.empty()) return;
        io::output_file file(options_.prometheus);
        file.append(documents::prometheus_text(
            line, folder_.empty() ? fs::path(name).parent_path().string() : folder_, done_.size()));
        file.commit();
    }

    void report_incomplete() const {
        for (const auto& [name, s] : seen_) {
            if (!s.look.missing.empty()) remark(name + " is not complete yet: " + s.look.missing);
        }
    }
    // Reports once that a checkpoint does not become complete.
    void report_stalled() {
        for (auto& [name, s] : seen_) {
            if (s.look.missing.empty() || !s.unchanged || s.told) continue;
            s.told = true;
            remark(name + " is not complete and does not grow: " + s.look.missing);
        }
    }

    const watch_command& options_;
    documents::watcher watcher_;
    engine::run_control control_;
    watch_log log_;
    std::string folder_;  // empty: a list
    std::set<std::string> done_;
    std::map<std::string, seen> seen_;
    bool broken_ = false;
};

int run_watch(const watch_command& o) {
    duration_of(o.every);
    std::vector<std::string> files;
    if (!o.log.empty() && o.log != "-") files.push_back(o.log);
    if (!o.prometheus.empty()) files.push_back(o.prometheus);
    require_distinct(o.paths, files);
    return watch_run(o).run();
}

}  // namespace

runner declare_watch(parser& cmd) {
    const auto o = std::make_shared<watch_command>();
    cmd.group("Input");
    cmd.add_option("DIR|FILE", o->paths,
                   "a directory, whose checkpoints are checked as they appear; or checkpoints, "
                   "which are checked once, in the order of the numbers in their names")
        ->required();
    cmd.add_option("--match GLOB", o->names,
                   "of a directory, only checkpoints whose name matches; repeatable");
    cmd.add_option("-t,--tensor GLOB", o->options.globs,
                   "tensors whose name matches (*, ?, [set]); repeatable; without it and --role: "
                   "norms");
    declare_roles(cmd, o->options.roles);
    cmd.group("Watching");
    cmd.add_option("-r,--recipe RECIPE", o->options.recipes,
                   "what the training quantizes to (mxfp8:scale=floor); repeatable");
    cmd.add_option("--every TIME", o->every,
                   "between two checks of the directory: 30s, 5m, 1h (60s)");
    cmd.add_flag("--once", o->once, "take what is complete now, and end");
    cmd.add_option("--until STEP", o->until, "end after a checkpoint of this step or a later one");
    cmd.group("Rules");
    cmd.add_option("--rule RULE", o->options.rules,
                   "what must hold, as in mx gate: [CLASS:]METRIC OP NUMBER; repeatable (" +
                       base::joined(std::vector<std::string>(documents::watch_rules.begin(),
                                                             documents::watch_rules.end()),
                                    ", ") +
                       ")");
    cmd.add_option("--rules FILE", o->options.rule_files,
                   "rules from a file ('-': standard input), one per line; # comments");
    cmd.add_option("--exec COMMAND", o->exec,
                   "run this in a shell for a checkpoint that breaks a rule, and go on watching")
        ->file_name();
    cmd.group("Output");
    cmd.add_option(
           "--log FILE", o->log,
           "append a line of JSON per checkpoint, and go on from it at the next start ('-': "
           "stdout, without memory)")
        ->file_name();
    cmd.add_option("--prometheus FILE", o->prometheus,
                   "figures of the last checkpoint, for the textfile collector of node_exporter")
        ->file_name();
    declare_run(cmd, o->run);
    cmd.description(
        "Checks the checkpoints of a training run: waits until each is complete, measures its norm "
        "gains as mx cluster does, compares it with the one before as mx diff does, and warns if "
        "blocks saturate, if the maxima of three checkpoints rise toward where the recipe clamps, "
        "and if block maxima are about to fall through a power of two. A warning names the tensor, "
        "the step at which it is expected, and the cheapest remedy. It ends with exit code 1 when "
        "a rule is broken, after all checkpoints that are there, or with --exec runs a command and "
        "continues.");
    cmd.examples(
        "mx watch run/ --log watch.jsonl\n"
        "mx watch run/ -r mxfp8:scale=rceil --every 5m --prometheus /var/lib/node/mx.prom\n"
        "mx watch run/ --log watch.jsonl --exec 'mail -s \"$MX_WATCH_MESSAGE\" me' --until 100000\n"
        "mx watch run/ --once --log watch.jsonl\n"
        "mx watch --rule 'norm:drift.nrmse<1%' -- step*.safetensors\n");
    return [o] { return run_watch(*o); };
}

}  // namespace mx::app
