// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/fit/fit.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "apps/mx/options.hpp"
#include "apps/mx/progress.hpp"
#include "libmx/io/input_stream.hpp"
#include "libmx/optimize/minimize.hpp"
#include "libmx/pages/views/document_parts.hpp"
#include "libmx/studies/fit/records.hpp"

namespace mx::app {
namespace {

struct fit_options {
    std::string file;
    std::string form = "chinchilla", objective = "mean";
    std::vector<std::string> points, compute;
    fit::run_request runs;
    double threshold = 1e-3;
    std::uint64_t resamples = 200, seed = 1;
    output_options out;
    run_options run;
};

double positive_number(const std::string& text, const char* option) {
    const auto x = report::finite_number(text);
    if (!x || !(*x > 0)) refuse("{}: '{}' is not a positive number", option, text);
    return *x;
}

fit::fit_request request_of(const fit_options& o) {
    fit::fit_request r;
    r.is = base::row_named(fit::forms, "form", o.form).is;
    require_one_of("--objective", "objective", o.objective, {"mean", "sum"});
    r.sum = o.objective == "sum";
    if (!(o.threshold > 0)) refuse("--huber: the threshold must be positive");
    r.threshold = o.threshold;
    r.resamples = o.resamples;
    r.seed = o.seed;
    for (const std::string& text : o.compute) {
        r.compute.push_back(positive_number(text, "--compute"));
    }
    for (const std::string& text : o.points) {
        const std::size_t comma = text.find(',');
        if (comma == std::string::npos) refuse("--predict: '{}' is not N,D", text);
        r.points.emplace_back(positive_number(text.substr(0, comma), "--predict"),
                              positive_number(text.substr(comma + 1), "--predict"));
    }
    return r;
}

// The runs of each group, in order of first appearance.
std::vector<fit::group_fit> groups_of(const fit::runs& all) {
    std::vector<fit::group_fit> groups;
    for (const fit::run& r : all.kept) {
        auto at = std::ranges::find(groups, r.group, &fit::group_fit::group);
        if (at == groups.end()) {
            at = groups.insert(groups.end(), fit::group_fit{r.group, {}, {}});
        }
        at->some.push_back(r);
    }
    return groups;
}

int run_fit(const fit_options& o) {
    optimize::require_nlopt("mx study scaling-law");
    fit::fit_request request = request_of(o);
    const engine::run_control control = control_of(o.run);
    request.threads = control.threads;
    request.cancel = control.cancel;
    fit::run_request runs_request = o.runs;
    runs_request.with_bits = request.is == fit::form::precision;
    outputs to(o.out, {o.file});
    io::input_stream file(o.file);
    const report::csv_table table =
        report::read_csv([&](std::span<char> out) { return file.read(out); }, o.file);
    const fit::runs all = fit::runs_of(table, runs_request);
    if (runs_request.with_bits && all.bits.empty() && !all.post) {
        refuse("--form precision needs columns of bits: P_w, P_a or others that begin with P_");
    }
    if (all.kept.empty()) {
        throw base::error(base::error_kind::input, "has no run to fit to", {o.file, {}, {}});
    }
    std::vector<fit::group_fit> groups = groups_of(all);
    std::optional<step_bar> bar(std::in_place, o.run.quiet, groups.size() * request.resamples);
    request.on_fit = [&bar] { bar->step(); };
    for (fit::group_fit& g : groups) {
        try {
            g.found = fit::fit_law(all, g.some, request);
        } catch (const base::error& e) {
            if (e.kind() != base::error_kind::input) throw;
            throw base::error(
                e.kind(),
                g.group.empty() ? e.message() : fmt::format("{}: {}", g.group, e.message()),
                {o.file, {}, {}});
        }
    }

    bar.reset();

    report::document d;
    d.title = "A scaling law";
    d.head = pages::document_head("mx.fit/1");
    d.head.emplace_back("input", o.file);
    d.head.emplace_back("form", o.form);
    d.head.emplace_back("objective", o.objective);
    d.head.emplace_back("threshold", real(request.threshold));
    d.head.emplace_back("resamples", integer(request.resamples));
    d.head.emplace_back("seed", integer(request.seed));
    report::list predictions, runs;
    const auto append = [](report::list& list, const std::vector<report::record>& more) {
        list.insert(list.end(), more.begin(), more.end());
    };
    for (const fit::group_fit& g : groups) {
        d.results.push_back(fit::fit_record(all, g, request));
        append(predictions, fit::prediction_records(all, g));
        append(runs, fit::run_records(all, g));
    }
    d.tail.emplace_back("predictions", std::move(predictions));
    d.tail.emplace_back("frontier", to_list(fit::frontier_records(groups.front(), request.is)));
    d.tail.emplace_back("runs", std::move(runs));
    d.tail.emplace_back("left_out", to_list(fit::left_out_records(all)));
    finish_with_page(to, d, fit::fit_summary(all, groups, request), o.run.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_scaling_law(parser& cmd) {
    const auto o = std::make_shared<fit_options>();
    cmd.group("Input");
    cmd.add_option("RUNS.csv", o->file,
                   "a table with columns N (parameters), D (tokens) and loss ('-': standard input)")
        ->required();
    cmd.add_option("--column NAME=COLUMN", o->runs.columns,
                   "column of N, D or loss if its name differs; repeatable");
    cmd.add_option("--where COLUMN=TEXT", o->runs.where,
                   "only rows with this text in a column; repeatable");
    cmd.add_option("--by COLUMN", o->runs.by, "a law for each value of a column");
    cmd.add_option("--max-loss X", o->runs.most_loss, "leave out runs with a loss above")->finite();
    cmd.add_option("--max-rise X", o->runs.most_rise,
                   "leave out, as diverged, runs that ended more than X above their minimum: needs "
                   "a column min_loss or final_loss")
        ->finite();
    cmd.group("Law");
    cmd.add_option("--form FORM", o->form, "chinchilla (default), kaplan or precision");
    cmd.add_option("--objective NAME", o->objective,
                   "form of the objective: mean (default) or sum over the runs");
    cmd.add_option("--huber X", o->threshold,
                   "residual in log L from which Huber's loss is linear (0.001)")
        ->finite();
    cmd.add_option("--bootstrap N", o->resamples,
                   "fits to resampled runs for the intervals (200); 0: no intervals")
        ->in_range(std::uint64_t{0}, std::uint64_t{100000});
    cmd.add_option("--seed N", o->seed, "of the resampling (1)")->not_negative();
    cmd.group("Predictions");
    cmd.add_option("--compute FLOP,...", o->compute,
                   "budgets to find the optimal size for; default: 1, 10 and 100 times that of "
                   "the largest run")
        ->delimiter(',');
    cmd.add_option("--predict N,D", o->points, "predict the loss of this size; repeatable");
    declare_outputs(cmd, o->out);
    declare_run(cmd, o->run, false);
    cmd.description(
        "Fits a scaling law to a table of runs: the loss as a function of parameters and tokens, "
        "by Huber's loss of log L and L-BFGS from a grid of starts, like the published laws. "
        "Coefficients have bootstrap intervals, but are correlated: look at the predictions, "
        "which also have intervals, and at how well runs of little compute predict those of much. "
        "The form precision reads bits from columns P_w, P_a and so on (empty: not quantized), "
        "and those of weights quantized after training from P_post. Runs without a finite loss "
        "are left out and named; others only on request.");
    cmd.examples(
        "mx study scaling-law runs.csv\n"
        "mx study scaling-law runs.csv --html fit.html --json fit.json\n"
        "mx study scaling-law runs.csv --column loss=min_loss --where scheme=e4m3/bf16 --compute "
        "1e20,1e21\n"
        "mx study scaling-law runs.csv --by scheme --max-rise 0.02\n"
        "mx study scaling-law runs.csv --form precision --predict 7e9,2e12\n");
    return [o] { return run_fit(*o); };
}

}  // namespace mx::app
