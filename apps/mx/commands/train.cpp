// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "apps/mx/backends.hpp"
#include "apps/mx/manual.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/seed_list.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/experiments/step_time.hpp"
#include "libmx/lab/run_folder.hpp"
#include "libmx/lab/schemes.hpp"
#include "libmx/pages/views/figures.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/members.hpp"

namespace mx::app {
namespace {

namespace fs = std::filesystem;

struct train_options {
    std::string model;
    std::map<std::string, std::string> request;    // by request_key::name
    std::map<std::string, std::string> precision;  // by precision_key::name
    bool cosine = false, demo = false, dry = false;
    std::string size;
    std::vector<std::string> at;
    std::string seeds;
    std::uint64_t nudges = 0;
    std::optional<std::uint64_t> nudge_at;
    std::string resume, folder;
    std::uint64_t checkpoint_every = 500;
    std::vector<std::uint64_t> dumps, checkpoints;
    output_options out;
    run_options run;
};

// The words of all --at options: a number starts one, and its settings follow.
std::vector<lab::intervention> interventions_of(const std::vector<std::string>& words) {
    std::vector<std::string> texts;
    for (const std::string& word : words) {
        const bool number =
            !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
        if (number || texts.empty()) {
            texts.push_back(word);
        } else {
            texts.back() += " " + word;
        }
    }
    std::vector<lab::intervention> all;
    for (const std::string& text : texts) all.push_back(lab::parse_intervention(text));
    std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.after < b.after; });
    return all;
}

lab::run_request request_of(const train_options& o) {
    lab::run_request r = lab::request_for(o.model, o.size);
    const bool of_model = !o.request.at("tokens").empty();
    if (of_model) {
        if (!o.size.empty()) refuse("--size: the model of --init has its own");
        lab::begin_with_model(r, o.request.at("init"));
    }
    for (const lab::request_key& key : lab::request_keys()) {
        const std::string& text = o.request.at(std::string(key.name));
        if (text.empty()) continue;
        if (of_model && key.group == "Network" && key.name != "context" && key.name != "init") {
            refuse("--{}: the model of --init has its own", key.name);
        }
        lab::set_key(r, key, text);
    }
    // Applies a scheme first, then settings from general to specific, in any order on the command
    // line.
    const auto add = [&](std::string_view name) {
        const std::string& text = o.precision.at(std::string(name));
        if (text.empty()) return;
        if (name == "ln" && text == "none") {
            r.shape.norm = lab::norm_kind::none;
            return;
        }
        try {
            const std::vector<lab::setting> one =
                lab::parse_settings(fmt::format("{}={}", name, text));
            r.settings.insert(r.settings.end(), one.begin(), one.end());
        } catch (const base::error& e) {
            refuse("--{}: {}", name == "all" ? "recipe" : name, e.message());
        }
    };
    add("scheme");
    for (const lab::precision_key& key : lab::precision_keys()) {
        if (key.name != "scheme") add(key.name);
    }
    if (o.cosine && r.cosine_steps == 0) r.cosine_steps = r.steps;
    lab::fit_schedule(r);
    r.interventions = interventions_of(o.at);
    lab::check(r);
    return r;
}

// A planned run and its output.
struct job {
    std::string name;    // within the folder; "" for the folder itself
    std::string folder;  // "" for none
    std::optional<lab::run_request> request;
    std::string checkpoint;  // else: the checkpoint to resume from
    std::uint64_t nudge = 0;
};

std::string inside(const std::string& folder, const std::string& name) {
    if (folder.empty() || name.empty()) return folder;
    return (fs::path(folder) / name).string();
}

std::vector<job> jobs_of(const train_options& o) {
    std::vector<job> jobs;
    if (o.nudge_at && o.nudges == 0) refuse("--nudge-at: needs --nudge N");
    const std::uint64_t copies = std::max<std::uint64_t>(1, o.nudges);
    if (!o.resume.empty()) {
        for (const auto& [name, text] : o.request) {
            constexpr std::array changeable{"steps", "text",        "tokens",
                                            "data",  "probe-every", "probe-draws"};
            if (!text.empty() && std::ranges::find(changeable, name) == changeable.end()) {
                refuse("--{}: a resumed run keeps what it began with", name);
            }
        }
        for (const auto& [name, text] : o.precision) {
            if (text.empty()) continue;
            refuse("--{}: a resumed run keeps what it began with; change it with --at STEP {}={}",
                   name == "all" ? "recipe" : name, name, text);
        }
        if (!o.seeds.empty() || o.cosine || !o.model.empty() || !o.size.empty() || o.dry) {
            refuse(
                "--resume takes no model, --size, --seeds, --cosine or --dry-run: the checkpoint "
                "has them");
        }
        if (o.nudges > 0 && o.folder.empty()) {
            refuse("--nudge with --resume makes new runs: name their folder with -o");
        }
        const std::vector<std::string> found = lab::checkpoints_of(o.resume);
        if (o.folder.empty() && fs::exists(found.front()) &&
            fs::path(found.front()).filename() != lab::checkpoint_name) {
            refuse(
                "--resume from a kept state would overwrite the run it is of: name a folder with "
                "-o");
        }
        for (const std::string& path : found) {
            const fs::path from = fs::path(path).parent_path();
            for (std::uint64_t copy = 0; copy < copies; ++copy) {
                job j;
                j.checkpoint = path;
                if (found.size() > 1) j.name = from.filename().string();
                if (o.nudges > 0) {
                    j.nudge = copy + 1;
                    j.name += fmt::format("{}nudge-{}", j.name.empty() ? "" : ".", j.nudge);
                }
                j.folder = o.folder.empty() ? from.string() : inside(o.folder, j.name);
                if (!o.folder.empty()) lab::begin_folder(j.folder);
                jobs.push_back(std::move(j));
            }
        }
        return jobs;
    }
    if (o.model.empty()) refuse("name a model: mx train proxy, olmo or llama (or --resume FOLDER)");
    const lab::run_request base = request_of(o);
    std::vector<std::uint64_t> seeds{base.seed};
    if (!o.seeds.empty()) {
        if (!o.request.at("seed").empty()) refuse("--seed and --seeds: give one of them");
        seeds = seeds_of(o.seeds);
    }
    for (const std::uint64_t seed : seeds) {
        for (std::uint64_t copy = 0; copy < copies; ++copy) {
            job j;
            j.request = base;
            j.request->seed = seed;
            if (seeds.size() > 1) j.name = fmt::format("seed-{}", seed);
            if (o.nudges > 0) {
                j.nudge = copy + 1;
                j.name += fmt::format("{}nudge-{}", j.name.empty() ? "" : ".", j.nudge);
            }
            j.folder = inside(o.folder, j.name);
            if (!j.folder.empty()) lab::begin_folder(j.folder);
            jobs.push_back(std::move(j));
        }
    }
    return jobs;
}

// The demo: gains that begin in the clamp zone of floor, under floor and under rceil.
constexpr std::uint64_t demo_seeds = 8;
constexpr std::array demo_rules{"floor", "rceil"};

std::vector<job> demo_jobs(const train_options& o) {
    const auto given = [](const auto& entry) { return !entry.second.empty(); };
    if (std::ranges::any_of(o.request, given) || std::ranges::any_of(o.precision, given) ||
        !o.at.empty() || !o.seeds.empty() || !o.resume.empty() || o.nudges != 0 || o.cosine ||
        !o.size.empty() || o.dry || (!o.model.empty() && o.model != "proxy")) {
        refuse("--demo is a fixed set of runs: leave out what would change it");
    }
    lab::run_request r;
    r.batch = 64;
    r.rate = 0.005;
    r.steps = 81;
    r.least_gain = 0.9;
    r.most_gain = 0.99;
    r.probe_every = 20;
    std::vector<job> jobs;
    for (const char* rule : demo_rules) {
        const std::string recipe = fmt::format("mxfp8:scale={},round=away", rule);
        r.settings =
            lab::parse_settings(fmt::format("su.told.e4m3 all={} ln-gain={}", recipe, recipe));
        for (r.seed = 1; r.seed <= demo_seeds; ++r.seed) {
            job j;
            j.name = fmt::format("{}.seed-{}", rule, r.seed);
            j.request = r;
            j.folder = inside(o.folder, j.name);
            if (!j.folder.empty()) lab::begin_folder(j.folder);
            jobs.push_back(std::move(j));
        }
    }
    return jobs;
}

// The probes of the runs of demo_jobs, in their order, as means over the seeds of a rule.
std::vector<report::section> demo_sections(const std::vector<std::vector<report::record>>& probes,
                                           const std::vector<double>& last_losses) {
    report::section table{.heading = "Probes: means over the seeds",
                          .columns = pages::columns_of({"step"})};
    for (const char* rule : demo_rules) {
        table.columns.push_back(
            {fmt::format("gain_{}", rule), fmt::format("{}\ngain", rule), cell::fixed, 3});
        table.columns.push_back({fmt::format("zeta_{}", rule), "\nzeta", cell::fixed, 3});
    }
    const auto figure = [&](std::size_t rule, std::uint64_t seed, std::size_t probe,
                            const char* name) {
        return report::number_of(probes[rule * demo_seeds + seed].at(probe), name).value_or(0);
    };
    const std::size_t count = probes.front().size();
    std::vector<double> gain(probes.size());  // of a run, the mean of its probes
    for (std::size_t p = 0; p < count; ++p) {
        report::record row{{"step", *report::find(probes.front()[p], "step")}};
        for (std::size_t rule = 0; rule < demo_rules.size(); ++rule) {
            for (const char* name : {"gain", "zeta"}) {
                double sum = 0;
                for (std::uint64_t seed = 0; seed < demo_seeds; ++seed) {
                    sum += figure(rule, seed, p, name);
                    if (name == std::string_view("zeta")) continue;
                    gain[rule * demo_seeds + seed] +=
                        figure(rule, seed, p, name) / static_cast<double>(count);
                }
                row.emplace_back(fmt::format("{}_{}", name, demo_rules[rule]), sum / demo_seeds);
            }
        }
        table.rows.push_back(std::move(row));
    }
    table.notes.push_back(
        "gain: q.g / |g|^2 of the quantized gradient q and the gradient g in float32 at the same "
        "parameters; below 1, q is too short. zeta: |q - g| / |g|.");
    std::uint64_t shorter = 0;
    std::array<double, demo_rules.size()> mean{}, loss{};
    for (std::uint64_t seed = 0; seed < demo_seeds; ++seed) {
        shorter += gain[seed] < gain[demo_seeds + seed] ? 1 : 0;
        for (std::size_t rule = 0; rule < demo_rules.size(); ++rule) {
            mean[rule] += gain[rule * demo_seeds + seed] / demo_seeds;
            loss[rule] += last_losses[rule * demo_seeds + seed] / demo_seeds;
        }
    }
    report::section verdict{.heading = "Verdict"};
    verdict.notes = {
        report::item(fmt::format(
            "Under floor the gradient is shorter than under rceil in {} of {} seeds: "
            "gain {:.3f} and {:.3f}{}.",
            shorter, demo_seeds, mean[0], mean[1],
            shorter == demo_seeds ? fmt::format(" (sign test p = {:.2g}, one comparison)",
                                                std::pow(2.0, 1.0 - demo_seeds))
                                  : "")),
        report::item(
            "Why: gains of layer norms begin in [0.9, 0.99). Floor clamps them to 0.875 in E4M3, "
            "which shortens what they multiply; rceil clamps nothing."),
        report::item(fmt::format(
            "Mean loss of the last step: {:.4f} and {:.4f}. mx cluster and mx watch find "
            "such gains.",
            loss[0], loss[1]))};
    return {std::move(verdict), std::move(table)};
}

// The step of a perturbation: as given, at the first intervention, or immediately.
std::uint64_t nudge_step(const train_options& o, std::uint64_t done) {
    if (o.nudge_at) return *o.nudge_at;
    const std::vector<lab::intervention> all = interventions_of(o.at);
    return all.empty() ? done : all.front().after;
}

// The status of one run or all: a line that is rewritten in the terminal, elsewhere a line a
// minute.
class progress_line {
  public:
    progress_line(bool quiet, std::size_t runs)
        : runs_(runs), shown_(!quiet), terminal_(stderr_is_terminal()) {}
    ~progress_line() {
        if (shown_ && terminal_) clear_status();
    }

    void expect(std::uint64_t steps) {
        const std::lock_guard lock(guard_);
        total_ += steps;
    }
    void step(const lab::training& t) {
        if (!shown_) return;
        const std::lock_guard lock(guard_);
        ++done_;
        const auto now = std::chrono::steady_clock::now();
        using namespace std::chrono_literals;
        if (now - last_ < (terminal_ ? 200ms : 60000ms)) return;
        last_ = now;
        const double seconds = std::chrono::duration<double>(now - start_).count();
        const double left = seconds / static_cast<double>(done_) *
                            static_cast<double>(total_ > done_ ? total_ - done_ : 0);
        const auto time = static_cast<std::uint64_t>(left);
        const lab::step_figures& s = t.history().back();
        const std::string which = runs_ == 1 ? "" : fmt::format("{} runs  ", runs_);
        const std::string where = runs_ == 1
                                      ? fmt::format("step {}/{}", t.done(), t.request().steps)
                                      : fmt::format("{:.0f}%", 100.0 * static_cast<double>(done_) /
                                                                   static_cast<double>(total_));
        std::string line = fmt::format(
            "{}{}  loss {:.5g}  gradient {:.3g}  rate {:.3g}  {}:{:02} left", which, where, s.loss,
            s.gradient_norm, lab::rate_of(t.request(), t.done()), time / 60, time % 60);
        if (!terminal_) {
            fmt::print(stderr, "{}\n", line);
            return;
        }
        line.resize(
            std::min(line.size(), static_cast<std::size_t>(std::max(status_width() - 1, 1))));
        show_status(line);
    }

  private:
    std::size_t runs_;
    bool shown_, terminal_;
    std::mutex guard_;
    std::uint64_t done_ = 0, total_ = 0;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), last_ = start_;
};

report::document document_of(const std::vector<report::record>& rows, const report::notes& notes) {
    report::document d;
    d.title = "Training runs";
    d.head = pages::document_head("mx.train/1");
    d.results = rows;
    report::section s;
    s.columns = pages::columns_of(
        {"run", "status", "steps",
         pages::column_of("first_loss", "first loss", cell::significant, 5),
         pages::column_of("least_loss", "least loss", cell::significant, 5),
         pages::column_of("most_loss", "largest loss", cell::significant, 5),
         pages::column_of("last_loss", "last loss", cell::significant, 5), "unstable_at"});
    if (rows.size() <= 1) s.columns.erase(s.columns.begin());
    const auto any_has = [&](const char* member) {
        return std::ranges::any_of(
            rows, [&](const report::record& r) { return report::find(r, member) != nullptr; });
    };
    if (any_has("held_out_loss")) {
        s.columns.push_back({"held_out_loss", "held\nout", cell::significant, 5});
    }
    if (any_has("loss_floor")) {
        s.columns.push_back({"late_loss", "last\ntenth", cell::significant, 5});
        s.columns.push_back({"loss_floor", "least\nexpected", cell::significant, 5});
    }
    s.rows = rows;
    s.notes = notes;
    d.sections.push_back(std::move(s));
    return d;
}

constexpr report::member_type run_member{"run", "string",
                                         "its folder below --output; empty: --output itself"};

// Losses at intermediate steps, so that a table shows the curve.
report::section curve_of(const lab::training& t) {
    report::section s;
    s.heading = "On the way";
    s.columns =
        pages::columns_of({"step", pages::column_of("loss", 6),
                           pages::column_of("gradient_norm", "gradient norm", cell::significant)});
    const std::size_t count = t.history().size();
    std::set<std::size_t> shown;
    for (std::size_t i = 1; i <= 10; ++i) shown.insert(std::max<std::size_t>(1, count * i / 10));
    shown.insert(1);
    for (const std::size_t step : shown) {
        if (step > count) continue;
        const lab::step_figures& f = t.history()[step - 1];
        const auto number = [](double x) { return std::isfinite(x) ? real(x) : undefined(); };
        s.rows.push_back({{"step", integer(step)},
                          {"loss", number(static_cast<double>(f.loss))},
                          {"gradient_norm", number(f.gradient_norm)}});
    }
    return s;
}

// The losses of a run for a figure: the largest of each of at most 400 ranges of steps.
report::line_chart::line line_of(const lab::training& t, const std::string& name) {
    report::line_chart::line line{name.empty() ? "loss" : name, {}};
    const auto& history = t.history();
    const std::size_t stride = std::max<std::size_t>(1, history.size() / 400);
    for (std::size_t i = 0; i < history.size(); i += stride) {
        float most = history[i].loss;
        for (std::size_t k = i; k < std::min(i + stride, history.size()); ++k) {
            most = history[k].loss > most ? history[k].loss : most;
        }
        line.points.push_back(
            {static_cast<double>(i + 1),
             std::isfinite(most) ? std::optional(static_cast<double>(most)) : std::nullopt, ""});
    }
    return line;
}

void draw_losses(std::vector<report::line_chart::line> lines, report::document& d) {
    report::line_chart chart;
    chart.x = pages::axis_of("step", "");
    chart.y = pages::axis_of("loss", "", true);
    const std::size_t all = lines.size();
    if (all > pages::most_lines) lines.erase(lines.begin() + pages::most_lines, lines.end());
    chart.lines = std::move(lines);
    pages::add_figure(d.sections.front(), "losses", "Losses",
                      fmt::format("Each point is the largest loss of its range of steps.{}",
                                  all > pages::most_lines
                                      ? fmt::format(" The first {} of {} runs; mx runs draws more.",
                                                    pages::most_lines, all)
                                      : ""),
                      std::move(chart));
}

lab::run_plan plan_of(const train_options& o, const job& j) {
    lab::run_plan plan;
    plan.folder = j.folder;
    plan.checkpoint_every = o.checkpoint_every;
    plan.checkpoints.insert(o.checkpoints.begin(), o.checkpoints.end());
    plan.dumps.insert(o.dumps.begin(), o.dumps.end());
    plan.head = pages::document_head("mx.run/1");
    plan.cancel = &interrupted();
    return plan;
}

struct estimated_cost {
    const lab::run_request& r;
    std::uint64_t runs;
    const lab::model_cost& of;
    std::optional<double> floor;
    experiments::step_time step;
    double rounds;
};
constexpr std::array cost_members = std::to_array<report::declared<estimated_cost>>({
    {"model", "proxy|olmo|llama", "", [](auto& c) { return lab::name_of(c.r.model); }},
    {"runs", "ordinal", "seeds times nudged copies", [](auto& c) { return c.runs; }},
    {"parameters", "count", "of one run", [](auto& c) { return c.of.parameters; }},
    {"block_parameters", "count", "without embedding and head",
     [](auto& c) { return c.of.block_parameters; }},
    {"tokens_per_step", "ordinal", "", [](auto& c) { return c.r.batch; }},
    {"steps", "ordinal", "", [](auto& c) { return c.r.steps; }},
    {"flop_per_step", "amount", "of the products of one run, 2 a multiply-add",
     [](auto& c) { return c.of.flop; }},
    {"flop", "amount", "of all steps and runs",
     [](auto&
            c) { return c.of.flop * static_cast<double>(c.r.steps) * static_cast<double>(c.runs); }},
    {"bytes", "count", "of one run: parameters, gradients, moments, activations, room",
     [](auto& c) { return static_cast<std::uint64_t>(c.of.bytes); }},
    {"loss_floor", "number?", "made text: nats per byte below which no expected loss lies",
     [](auto& c) { return c.floor; }},
    {"seconds_per_step", "amount", "extrapolated from steps of smaller batches",
     [](auto& c) { return c.step.seconds; }},
    {"processor_seconds_per_step", "amount", "likewise, of all threads of one run",
     [](auto& c) { return c.step.processor_seconds; }},
    {"seconds", "amount", "of all steps and runs",
     [](auto& c) { return c.step.seconds * static_cast<double>(c.r.steps) * c.rounds; }},
});

// Threads that are not interrupted take less time than their processors work.
constexpr double longer_than_work = 1.3;

// The estimated cost of a run.
int show_cost(const train_options& o) {
    if (o.model.empty()) refuse("name a model: mx train proxy, olmo or llama");
    const lab::run_request r = request_of(o);
    const std::uint64_t runs =
        (o.seeds.empty() ? 1 : seeds_of(o.seeds).size()) * std::max<std::uint64_t>(1, o.nudges);
    outputs to(o.out, {});
    const std::string backend(chosen_backend(o.run.backend).name);
    const int threads = base::thread_count(o.run.threads);
    lab::execution_context on(runs == 1 ? threads : 1, backend);
    const std::unique_ptr<lab::model> model = lab::make_model(r, on);
    const lab::model_cost cost = model->cost();
    const experiments::step_time step =
        experiments::time_of_step(r, runs == 1 ? threads : 1, backend);
    const auto rounds =
        static_cast<double>(runs == 1 ? 1
                                      : (runs + static_cast<std::uint64_t>(threads) - 1) /
                                            static_cast<std::uint64_t>(threads));
    const auto floor = model->loss_floor();
    report::document d;
    d.title = "A training run, before it begins";
    d.head = pages::document_head("mx.training_cost/1");
    d.results = std::vector<report::record>{
        report::written(cost_members, {r, runs, cost, floor, step, rounds})};
    report::section s;
    s.columns = pages::columns_of({"what", pages::column_of("value", "value", cell::name)});
    const auto row = [&](const char* what, std::string value) {
        s.rows.push_back({{"what", text(what)}, {"value", text(value)}});
    };
    row("parameters", fmt::format("{} ({} in blocks)", cost.parameters, cost.block_parameters));
    row("tokens", fmt::format("{} a step, {} in all", r.batch, r.batch * r.steps));
    row("products", fmt::format("{:.3g} GFLOP a step, {:.3g} TFLOP in all", cost.flop * 1e-9,
                                cost.flop * static_cast<double>(r.steps) * 1e-12));
    row("memory", fmt::format("{:.0f} MiB", cost.bytes / (1 << 20)));
    if (floor) row("least expected loss", fmt::format("{:.4f} nats", *floor));
    row("time", fmt::format("{:.3g} s a step, {:.3g} s in all, by {} thread{}", step.seconds,
                            step.seconds * static_cast<double>(r.steps) * rounds, threads,
                            threads == 1 ? "" : "s"));
    // A device works while threads wait for it.
    const bool waited =
        on.device() == nullptr && step.seconds > longer_than_work * step.processor_seconds;
    row("time of processors",
        fmt::format("{:.3g} s a step{}", step.processor_seconds,
                    waited ? ", less than it took: other work slows this one" : ""));
    if (runs > 1) {
        s.notes.push_back(fmt::format(
            "Of one run each; time of all {} side by side, memory as many times as threads.",
            runs));
    }
    s.notes.push_back("Time is extrapolated from two smaller batches that were just made.");
    d.sections.push_back(std::move(s));
    to.finish(d, o.run.quiet);
    return exit_code::fine;
}

// The files that a resumed run reads, as far as the user names them.
lab::named_files files_of(const train_options& o) {
    lab::named_files files;
    for (const char* key : {"text", "tokens", "data"}) {
        if (!o.request.at(key).empty()) files[key] = o.request.at(key);
    }
    return files;
}

int run_train(const train_options& o) {
    if (o.dry && o.resume.empty()) return show_cost(o);
    if (o.folder.empty() && o.resume.empty() && !(o.dumps.empty() && o.checkpoints.empty())) {
        refuse("--dump and --checkpoint write files: name their folder with -o");
    }
    for (const auto& [option, steps] :
         {std::pair{"--dump", &o.dumps}, std::pair{"--checkpoint", &o.checkpoints}}) {
        if (std::ranges::count(*steps, 0) > 0) refuse("{} 0: steps count from 1", option);
    }
    outputs to(o.out, {});
    const std::vector<job> jobs = o.demo ? demo_jobs(o) : jobs_of(o);
    const int threads = base::thread_count(o.run.threads);
    const std::string backend(chosen_backend(o.run.backend).name);
    // Runs are computed concurrently; each uses an equal share of the threads.
    const int side_by_side =
        static_cast<int>(std::min<std::size_t>(jobs.size(), static_cast<std::size_t>(threads)));
    const int within = jobs.size() == 1 ? threads : 1;
    const std::shared_ptr<base::notices> notices = notices_of(o.run);
    std::vector<report::record> rows(jobs.size());
    std::vector<std::vector<report::record>> probes(jobs.size());
    std::vector<double> last_losses(jobs.size());
    std::vector<lab::instability_rule::kind> rules(jobs.size());
    std::vector<report::line_chart::line> lines(jobs.size());
    std::optional<report::section> curve;
    {
        progress_line line(o.run.quiet, jobs.size());
        base::parallel_for(jobs.size(), side_by_side, nullptr, [&](std::uint64_t i, int) {
            const job& j = jobs[i];
            lab::execution_context on(within, backend, notices.get());
            lab::training t = j.request ? lab::training(*j.request, std::move(on))
                                        : lab::training(j.checkpoint, std::move(on), files_of(o));
            if (!j.request) {
                const std::string& steps = o.request.at("steps");
                t.extend(steps.empty() ? t.request().steps : whole_number("--steps", steps),
                         interventions_of(o.at));
                const auto given = [&](const char* name, std::uint64_t least, std::uint64_t most,
                                       std::uint64_t now) {
                    const std::string& text = o.request.at(name);
                    const std::string option = fmt::format("--{}", name);
                    const std::uint64_t n = text.empty() ? now : whole_number(option, text);
                    if (n < least || n > most) {
                        refuse("{} {}: give a number from {} to {}", option, n, least, most);
                    }
                    return n;
                };
                const lab::run_request& r = t.request();
                t.observe(given("probe-every", 0, std::uint64_t{1} << 40, r.probe_every),
                          static_cast<int>(given("probe-draws", 1, 1000,
                                                 static_cast<std::uint64_t>(r.probe_draws))));
            }
            if (j.nudge != 0) t.nudge(j.nudge, nudge_step(o, t.done()));
            line.expect(t.request().steps - std::min(t.done(), t.request().steps));
            lab::run_plan plan = plan_of(o, j);
            plan.on_step = [&](const lab::training& now) { line.step(now); };
            lab::run(t, plan);
            rows[i] = report::written(lab::run_members, lab::figures_of(t));
            rules[i] = lab::rule_of(t.request()).by;
            lines[i] = line_of(t, j.name);
            rows[i].insert(rows[i].begin(), {std::string(run_member.name), j.name});
            if (o.demo) {
                probes[i] = t.probes();
                last_losses[i] = static_cast<double>(t.history().back().loss);
            }
            if (jobs.size() == 1) curve = curve_of(t);
        });
    }
    if (interrupted()) throw base::error(base::error_kind::cancelled, "interrupted");
    const bool jumps =
        std::ranges::all_of(rules, [](auto by) { return by == lab::instability_rule::kind::jump; });
    report::notes notes{
        jumps ? "Unstable: a loss above 10 times the median of the 100 before it, after 20 steps."
              : "Unstable: most of 20 losses 3 deviations and 5 % above the median of the 100 "
                "before, "
                "after 20 steps."};
    const auto high = std::ranges::count_if(rows, [](const report::record& r) {
        return report::number_of(r, "rise_at_end").value_or(0) > lab::instability_rule().margin;
    });
    if (high > 0) {
        notes.push_back(report::item(fmt::format(
            "{} of {} runs end above their least loss: the mean of the last tenth by more than "
            "10 %.",
            high, rows.size())));
    }
    if (!o.folder.empty() && !o.demo) {
        notes.push_back(
            report::item(fmt::format("written to {}: run.json, checkpoints; go on with mx train "
                                     "--resume {} --steps N",
                                     o.folder, o.folder)));
    }
    report::document d = document_of(rows, notes);
    if (o.demo) {
        std::vector<report::section> sections = demo_sections(probes, last_losses);
        sections.insert(sections.end(), d.sections.begin(), d.sections.end());
        d.sections = std::move(sections);
    }
    draw_losses(std::move(lines), d);
    if (curve && !curve->rows.empty()) d.sections.push_back(std::move(*curve));
    to.finish(d, o.run.quiet);
    return exit_code::fine;
}

void declare_request(parser& cmd, train_options& o) {
    for (const lab::request_key& key : lab::request_keys()) {
        const std::string name(key.name);
        cmd.group(std::string(key.group),
                  key.group == "Output" ? help_page::command : help_page::training);
        cmd.add_option(fmt::format("--{} {}", name, key.type), o.request[name],
                       std::string(key.summary));
    }
    cmd.group("Optimizer", help_page::training);
    cmd.add_flag("--cosine", o.cosine, "half a cosine from --lr to --lr-min over all steps");
    cmd.group("Input");
    cmd.add_option("--seeds LIST", o.seeds, "several runs in parallel: 1..32, or 1,5,9");
}

// "fp32, {su.coded,su.told}.{e4m3, e2m3}, hybrid.{fwd}": prefixes with the same names together.
std::string scheme_names() {
    std::vector<std::pair<std::string, std::string>> lists;  // prefix, names
    for (const lab::scheme& s : lab::schemes) {
        const std::size_t dot = s.name.rfind('.');
        const std::string prefix(s.name.substr(0, dot == std::string_view::npos ? 0 : dot));
        const std::string name(s.name.substr(prefix.empty() ? 0 : dot + 1));
        if (lists.empty() || lists.back().first != prefix) {
            lists.emplace_back(prefix, name);
        } else {
            lists.back().second += ", " + name;
        }
    }
    std::string text;
    for (std::size_t i = 0; i < lists.size(); ++i) {
        const auto& [prefix, names] = lists[i];
        if (!text.empty()) text += ", ";
        if (prefix.empty()) {
            text += names;
        } else if (i + 1 < lists.size() && lists[i + 1].second == names) {
            text += fmt::format("{{{},{}}}.{{{}}}", prefix, lists[i + 1].first, names);
            ++i;
        } else {
            text += fmt::format("{}.{{{}}}", prefix, names);
        }
    }
    return text;
}

void declare_precision(parser& cmd, train_options& o) {
    cmd.group("Precision");
    for (const lab::precision_key& key : lab::precision_keys()) {
        const std::string name(key.name);
        const bool scheme = name == "scheme";
        // As in mx layer, where --x and --w are files.
        const std::string spelling = name == "all" ? "-r,--recipe"
                                     : key.also.empty()
                                         ? "--" + name
                                         : fmt::format("--recipe-{},--{}", name, key.also);
        cmd.add_option(fmt::format("{} {}", spelling, key.values), o.precision[name],
                       scheme ? fmt::format("all of these options, by name: {}", scheme_names())
                              : std::string(key.summary));
    }
}

}  // namespace

report::document_schema train_schema() {
    return report::document_schema("mx.train/1", "mx train", "Training runs in short.")
        .member({"results", "[#run]", "a run each"})
        .define("run", report::member_list().add(run_member).add(lab::run_members));
}

report::document_schema training_cost_schema() {
    return report::document_schema("mx.training_cost/1", "mx train --dry-run",
                                   "What a training run would take.")
        .member({"results", "[#cost]", "one"})
        .define("cost", cost_members);
}

runner declare_train(parser& cmd) {
    const auto o = std::make_shared<train_options>();
    cmd.group("Input");
    cmd.add_option("MODEL", o->model,
                   "proxy: the student and teacher of Su et al. (arXiv 2506.20752); olmo: their "
                   "language model (layer norms, norms of queries and keys, GELU); llama: RMSNorm "
                   "and SwiGLU");
    cmd.add_option("--size NAME", o->size,
                   "of a language model: tiny, small, medium or h200 (tiny)");
    declare_request(cmd, *o);
    declare_precision(cmd, *o);
    cmd.group("Interventions");
    cmd.add_option("--at STEP KEY=VALUE", o->at,
                   "an intervention: after STEP updates, KEY=VALUE (any option of Precision, all "
                   "for --recipe; lr, clip, beta2, adam-eps, weight-decay; moments=reset; skip=N "
                   "leaves out N batches) or a scheme applies; repeatable")
        ->expected(1, 1000);
    cmd.add_option("--nudge N", o->nudges,
                   "N copies, with weights multiplied by 1 + 1e-4 z, z normal, at the first "
                   "intervention")
        ->not_negative();
    cmd.add_option("--nudge-at STEP", o->nudge_at, "after STEP updates instead")->not_negative();
    cmd.group("Input");
    cmd.add_flag("--dry-run", o->dry,
                 "print parameters, FLOP, memory and time of the run; train nothing");
    cmd.add_flag("--demo", o->demo,
                 "gains that clamp under floor, not under rceil; the gradient's error");
    cmd.add_option("--resume FOLDER", o->resume,
                   "continue the run of this folder or checkpoint, to --steps in total");
    cmd.group("Output");
    cmd.add_option("-o,--output FOLDER", o->folder,
                   "folder for run.json, checkpoints and dumps; one below it for each of several "
                   "runs")
        ->file_name();
    cmd.add_option("--checkpoint-every N", o->checkpoint_every,
                   "steps after which the latest state is written (500; 0: at the end)")
        ->not_negative();
    cmd.add_option("--checkpoint STEP,...", o->checkpoints, "steps after which a state is kept")
        ->delimiter(',');
    cmd.add_option("--dump STEP,...", o->dumps,
                   "steps whose weights, activations and gradients are written")
        ->delimiter(',');
    declare_outputs(cmd, o->out);
    declare_run(cmd, o->run, false);
    cmd.description(
        "Trains a small network with any recipe on any operand of any product, with the same bits "
        "on every machine. A run can be stopped, changed at a step, and continued with all else "
        "equal, so every later difference is due to the change. Products are chains of float32 "
        "fused multiply-adds, or any accumulator model; layer norms, activations, loss and "
        "optimizer are float32 by default. With --backend cuda a GPU computes the large ones of "
        "these chains.");
    cmd.examples(
        "mx train proxy --width 64 --steps 500 --lr 0.003 --scheme su.coded.e4m3 -o run\n"
        "mx train --resume run --steps 1000\n"
        "mx train --resume run --steps 1500 --at 1200 scheme=fp32 -o changed\n"
        "mx train proxy --recipe mxfp8 --fprop-x bf16 --vector bf16 --seeds 1..8 -o runs\n"
        "mx train proxy --recipe mxfp4:round=stochastic --probe-every 50 -o run\n"
        "mx train proxy --steps 20 --dump 20 -o run\n"
        "mx train olmo --size small --dry-run\n"
        "mx train llama --steps 500 --weights mxfp8 --activations bf16 --gradients bf16 -o run\n"
        "mx train olmo --recipe mxfp4 --at 0 '*.layers.1.*:all=mxfp8' -o run\n");
    return [o] { return run_train(*o); };
}

}  // namespace mx::app
