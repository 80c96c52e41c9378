// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "apps/mx/backends.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/progress.hpp"
#include "apps/mx/seed_list.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/joined.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/experiments/records.hpp"
#include "libmx/pages/views/document_parts.hpp"
#include "libmx/report/command_line.hpp"

namespace mx::app {
namespace {

constexpr const char* usual_budget = "10m";

struct study_options {
    std::string study, model = "proxy", budget = usual_budget;
    std::map<std::string, std::string> request;  // by lab::request_key::name
    std::string seeds, folder;
    bool dry = false;
    output_options out;
    run_options run;
};

// Keys that a study sets itself, or that do not apply to many runs.
bool is_of_studies(const lab::request_key& key) {
    constexpr std::array left_out{std::string_view("seed"),        std::string_view("init"),
                                  std::string_view("data"),        std::string_view("tokens"),
                                  std::string_view("probe-every"), std::string_view("probe-draws")};
    return std::ranges::find(left_out, key.name) == left_out.end();
}

// The plan that fits the budget, with the changes from other options.
experiments::sized sized_of(const study_options& o, const experiments::study& s) {
    const std::size_t runs = experiments::runs_of(s.configurations()).size();
    experiments::sized sized =
        experiments::size_for(o.model, runs, experiments::parse_duration(o.budget));
    for (const lab::request_key& key : lab::request_keys()) {
        const auto given = o.request.find(std::string(key.name));
        if (given != o.request.end() && !given->second.empty()) {
            lab::set_key(sized.request, key, given->second);
        }
    }
    if (!o.seeds.empty()) sized.seeds = seeds_of(o.seeds);
    if (sized.seeds.size() < 2) refuse("--seeds: intervals take two seeds or more");
    lab::fit_schedule(sized.request);
    lab::check(sized.request);
    return sized;
}

// A description of the sizes.
std::string sizes_text(const experiments::study_plan& plan, std::size_t runs) {
    return fmt::format(
        "{} training runs of {} steps ({} settings by {} seeds): {:.3g} minutes of {:.0f} cores "
        "under "
        "the model of cost ({:.0f} GFLOP/s and {:.2f} G quantized elements/s a core)",
        runs * plan.seeds.size(), plan.request.steps, runs, plan.seeds.size(),
        experiments::cost_of(plan.request) * static_cast<double>(runs * plan.seeds.size()) /
            experiments::model_cores / 60,
        experiments::model_cores, experiments::model_flop * 1e-9,
        experiments::model_elements * 1e-9);
}

int run_study(const study_options& o) {
    if (o.study.empty()) {
        refuse("name a study: {}", base::joined(base::names_of(experiments::studies()), ", "));
    }
    const experiments::study& s = experiments::study_named(o.study);
    outputs to(o.out, {});
    experiments::sized sized = sized_of(o, s);
    experiments::study_plan plan;
    plan.of = &s;
    plan.request = std::move(sized.request);
    plan.seeds = std::move(sized.seeds);
    plan.folder = o.folder;
    plan.run_head = pages::document_head("mx.run/1");
    plan.threads = base::thread_count(o.run.threads);
    plan.backend = std::string(chosen_backend(o.run.backend).name);
    plan.notices = notices_of(o.run);
    plan.cancel = &interrupted();
    report::command_line again{.command = "study",
                               .files = {std::string(s.name)},
                               .options = experiments::options_of(plan.request, plan.seeds)};
    again.options.insert(again.options.begin(), {"on", o.model});
    const std::string command = again.text();
    const std::size_t runs = experiments::runs_of(s.configurations()).size();
    if (o.dry) {
        print(fmt::format("{}\n{}\n", sizes_text(plan, runs), command));
        finish_stdout();
        return exit_code::fine;
    }
    experiments::findings found;
    {
        step_bar bar(o.run.quiet, experiments::steps_of(plan));
        plan.on_step = [&] { bar.step(); };
        found = experiments::carry_out(plan);
        plan.on_step = nullptr;  // the plan outlives the bar
    }
    if (interrupted()) throw base::error(base::error_kind::cancelled, "interrupted");

    report::document d;
    d.title = std::string(s.title);
    d.head = pages::document_head("mx.study/1");
    std::optional<double> budget;
    if (o.seeds.empty()) budget = experiments::parse_duration(o.budget);
    for (auto& member : experiments::head_of(plan, budget, command, found)) {
        d.head.push_back(std::move(member));
    }
    d.results = experiments::results_of(plan, found);
    d.tail = experiments::tail_of(found);
    finish_with_page(
        to, d, experiments::sentences_of(plan, found), o.run.quiet,
        {{.heading = "Again", .notes = {sizes_text(plan, runs) + ".", report::command(command)}}});
    return exit_code::fine;
}

std::string study_names() {
    std::string names;
    for (const experiments::study& s : experiments::studies()) {
        names += fmt::format("{}{}: {} ({})", names.empty() ? "" : "; ", s.name, s.title, s.paper);
    }
    return names;
}

}  // namespace

runner declare_study(parser& cmd) {
    const auto o = std::make_shared<study_options>();
    cmd.group("Input");
    cmd.add_option("STUDY", o->study, study_names());
    cmd.add_option("--on MODEL", o->model,
                   "model to train: proxy, or a language model: olmo or llama (proxy)");
    cmd.group("Size");
    cmd.add_option("--budget TIME", o->budget,
                   fmt::format("90s, 10m, 1.5h: network, steps and seeds that take this time by a "
                               "cost model, on two cores, without measuring time ({})",
                               usual_budget));
    cmd.add_option("--seeds LIST", o->seeds, "1..8, or 1,5,9, instead of those of the budget");
    cmd.add_flag("--dry-run", o->dry, "print what would be trained, and the command for it");
    for (const lab::request_key& key : lab::request_keys()) {
        if (!is_of_studies(key)) continue;
        const std::string name(key.name);
        cmd.group(std::string(key.group), help_page::training);
        cmd.add_option(fmt::format("--{} {}", name, key.type), o->request[name],
                       std::string(key.summary));
    }
    cmd.group("Output");
    cmd.add_option("-o,--output FOLDER", o->folder,
                   "folder for all runs, which mx runs and mx train --resume can read")
        ->file_name();
    declare_outputs(cmd, o->out);
    declare_run(cmd, o->run, false);
    cmd.description(
        "Repeats a paper's experiment at a size for a laptop: trains every configuration of the "
        "study and its baseline with the same seeds, and gives each gap an interval. The verdict "
        "says which differences are significant, and what the size is too small for. Options of "
        "the network, the data and the optimizer override the choice of the budget; their "
        "defaults do not apply here. The last lines print the command that repeats the study bit "
        "for bit.");
    cmd.examples(
        "mx study correlation --budget 3m --html correlation.html\n"
        "mx study correlation --budget 1h --dry-run\n"
        "mx study hybrid --on olmo --budget 5m --json hybrid.json\n"
        "mx study correlation --width 64 --depth 2 --batch 64 --steps 400 --seeds 1..4 --json "
        "c.json\n"
        "mx study correlation --budget 5m -o runs\n");
    return [o] { return run_study(*o); };
}

}  // namespace mx::app
