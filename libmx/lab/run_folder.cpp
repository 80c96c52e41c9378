// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/run_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "libmx/base/status.hpp"
#include "libmx/io/folder_lock.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/report/members.hpp"
#include "libmx/report/writers.hpp"

namespace mx::lab {
namespace {

namespace fs = std::filesystem;

std::string inside(const std::string& folder, std::string_view name) {
    return (fs::path(folder) / name).string();
}

std::vector<float> losses_of(const training& t) {
    std::vector<float> all;
    for (const step_figures& s : t.history()) all.push_back(s.loss);
    return all;
}

void write_run(const training& t, const run_plan& plan) {
    io::output_file file(inside(plan.folder, run_name));
    report::write_json(run_document(t, plan.head), {},
                       [&](std::string_view part) { file.append(part); });
    file.commit();
}

}  // namespace

void begin_folder(const std::string& folder) {
    std::error_code failure;
    if (fs::exists(inside(folder, checkpoint_name), failure)) {
        base::refuse("already has a run: continue it with --resume, or name another folder",
                     {folder, {}, {}});
    }
    fs::create_directories(folder, failure);
    if (failure) {
        throw base::error(base::error_kind::output,
                          fmt::format("cannot make the folder: {}", failure.message()),
                          {folder, {}, {}});
    }
}

void run(training& t, const run_plan& plan) {
    const bool kept = !plan.folder.empty();
    std::optional<io::folder_lock> alone;
    if (kept) alone.emplace(plan.folder, "mx train");
    const auto cancelled = [&] { return plan.cancel != nullptr && plan.cancel->load(); };
    std::optional<std::uint64_t> written;
    const auto save = [&] {
        if (!kept) return;
        t.save(inside(plan.folder, checkpoint_name));
        // A hundredth of the steps apart at least: run.json grows with them.
        const bool soon = written && (t.done() - *written) * 100 < t.done();
        if (soon && !t.finished() && !cancelled()) return;
        write_run(t, plan);
        written = t.done();
    };
    // Checks early that the folder is writable, and records that a run started.
    if (t.done() == 0 || !t.finished()) save();
    while (!t.finished() && !cancelled()) {
        const std::uint64_t next = t.done() + 1;
        std::string dump;
        if (kept && plan.dumps.contains(next)) {
            dump = inside(plan.folder, fmt::format("dump-{:06}.safetensors", next));
        }
        t.step(dump);
        if (plan.on_step) plan.on_step(t);
        if (!kept) continue;
        if (plan.checkpoints.contains(t.done())) {
            t.save(inside(plan.folder, fmt::format("checkpoint-{:06}.safetensors", t.done())));
        }
        if (plan.checkpoint_every != 0 && t.done() % plan.checkpoint_every == 0) save();
    }
    if (t.finished()) t.evaluate();
    save();
}

instability_rule rule_of(const run_request& r) {
    const auto text = to_text(r);
    const auto task = text.find("task");
    return rule_for(name_of(r.model), task == text.end() ? "" : task->second);
}

report::record run_summary(const training& t) {
    const std::vector<float> losses = losses_of(t);
    report::record r{{"status", std::string(t.diverged()   ? "diverged"
                                            : t.finished() ? "complete"
                                                           : "stopped")},
                     {"steps", static_cast<std::int64_t>(losses.size())},
                     {"seed", static_cast<std::int64_t>(t.request().seed)},
                     {"nudge", static_cast<std::int64_t>(t.request().nudge)}};
    float least = INFINITY, most = 0;
    for (const float x : losses) {
        least = x < least ? x : least;
        most = x > most ? x : most;
    }
    r.emplace_back("first_loss",
                   losses.empty() ? report::value() : report::finite_or_null(losses.front()));
    r.emplace_back("last_loss",
                   losses.empty() ? report::value() : report::finite_or_null(losses.back()));
    r.emplace_back("least_loss", losses.empty() ? report::value() : report::finite_or_null(least));
    r.emplace_back("most_loss", losses.empty() ? report::value() : report::finite_or_null(most));
    const instability_rule rule = rule_of(t.request());
    const std::optional<std::uint64_t> broke = first_instability(losses, rule);
    r.emplace_back("unstable_at",
                   broke ? report::value(static_cast<std::int64_t>(*broke)) : report::value());
    const std::optional<double> rise = rise_at_end(losses, rule);
    r.emplace_back("rise_at_end", rise ? report::finite_or_null(*rise) : report::value());
    if (t.held_out_loss()) {
        r.emplace_back("held_out_loss", report::finite_or_null(*t.held_out_loss()));
    }
    const std::optional<double> floor = t.network().loss_floor();
    if (!floor) return r;
    const std::size_t late = std::max<std::size_t>(1, losses.size() / 10);
    double sum = 0;
    for (std::size_t i = losses.size() - std::min(late, losses.size()); i < losses.size(); ++i) {
        sum += static_cast<double>(losses[i]);
    }
    r.emplace_back("late_loss", losses.empty()
                                    ? report::value()
                                    : report::finite_or_null(sum / static_cast<double>(late)));
    r.emplace_back("loss_floor", *floor);
    return r;
}

report::document run_document(const training& t, const report::record& head) {
    report::document d;
    d.head = head;
    report::record request;
    for (const auto& [key, value] : to_text(t.request())) request.emplace_back(key, value);
    d.head.emplace_back("request", std::move(request));
    d.head.emplace_back("seed", static_cast<std::int64_t>(t.request().seed));
    report::list steps;
    std::size_t probe = 0;
    for (std::size_t i = 0; i < t.history().size(); ++i) {
        const step_figures& s = t.history()[i];
        report::record r{{"step", static_cast<std::int64_t>(i + 1)},
                         {"loss", report::finite_or_null(static_cast<double>(s.loss))},
                         {"gradient_norm", report::finite_or_null(s.gradient_norm)}};
        if (probe < t.probes().size() &&
            report::number_of(t.probes()[probe], "step") == static_cast<double>(i + 1)) {
            report::record figures(t.probes()[probe].begin() + 1, t.probes()[probe].end());
            r.emplace_back("probe", std::move(figures));
            ++probe;
        }
        steps.emplace_back(std::move(r));
    }
    d.tail.emplace_back("steps", std::move(steps));
    d.results = std::vector<report::record>{run_summary(t)};
    return d;
}

std::vector<std::string> checkpoints_of(const std::string& path) {
    std::error_code failure;
    if (!fs::is_directory(path, failure)) return {path};
    const std::string own = inside(path, checkpoint_name);
    if (fs::exists(own, failure)) return {own};
    std::vector<std::string> all;
    for (fs::directory_iterator it(path, failure), end; !failure && it != end;
         it.increment(failure)) {
        const std::string one = inside(it->path().string(), checkpoint_name);
        std::error_code none;
        if (fs::exists(one, none)) all.push_back(one);
    }
    if (all.empty()) {
        throw base::error(base::error_kind::input, "has no run of mx train: no checkpoint",
                          {path, {}, {}});
    }
    std::ranges::sort(all);
    return all;
}

}  // namespace mx::lab
