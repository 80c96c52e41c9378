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
#include "libmx/lab/probe.hpp"
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

report::value loss_value(float loss) { return report::finite_or_null(static_cast<double>(loss)); }
// Of losses that are no NaN; infinite, and 0, without any.
float least_of(const std::vector<float>& all) {
    float least = INFINITY;
    for (const float x : all) least = x < least ? x : least;
    return least;
}
float most_of(const std::vector<float>& all) {
    float most = 0;
    for (const float x : all) most = x > most ? x : most;
    return most;
}
report::value late_loss(const std::vector<float>& all) {
    const std::size_t late = std::max<std::size_t>(1, all.size() / 10);
    if (all.empty()) return {};
    double sum = 0;
    for (std::size_t i = all.size() - late; i < all.size(); ++i) {
        sum += static_cast<double>(all[i]);
    }
    return report::finite_or_null(sum / static_cast<double>(late));
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

run_figures figures_of(const training& t) {
    return {t, losses_of(t), judged_losses(losses_of(t), t.diverged()), rule_of(t.request()),
            t.network().loss_floor()};
}

const std::array<report::declared<run_figures>, 13> run_members{{
    {"status", "complete|stopped|diverged", "",
     [](auto& r) {
         return r.of.diverged() ? "diverged" : r.of.finished() ? "complete" : "stopped";
     }},
    {"steps", "count", "updates that were made", [](auto& r) { return r.losses.size(); }},
    {"seed", "count", "", [](auto& r) { return r.of.request().seed; }},
    {"nudge", "count", "of the copy; 0: not nudged", [](auto& r) { return r.of.request().nudge; }},
    {"first_loss", "number?", "",
     [](auto& r) { return r.losses.empty() ? report::value() : loss_value(r.losses.front()); }},
    {"last_loss", "number?", "",
     [](auto& r) { return r.losses.empty() ? report::value() : loss_value(r.losses.back()); }},
    {"least_loss", "number?", "", [](auto& r) { return loss_value(least_of(r.losses)); }},
    {"most_loss", "number?", "",
     [](auto& r) { return r.losses.empty() ? report::value() : loss_value(most_of(r.losses)); }},
    {"unstable_at", "count?", "step of the first instability",
     [](auto& r) { return first_instability(r.judged, r.rule); }},
    {"rise_at_end", "number?",
     "share by which the mean of the last tenth of the losses exceeds the least mean of a tenth",
     [](auto& r) {
         const std::optional<double> rise = rise_at_end(r.judged, r.rule);
         return rise ? report::finite_or_null(*rise) : report::value();
     }},
    {"held_out_loss", "number?",
     "text of a file: the loss after the last update of bytes that none learns from",
     [](auto& r) {
         const auto loss = r.of.held_out_loss();
         return report::only_if(loss.has_value(), report::finite_or_null(loss.value_or(0)));
     },
     false},
    {"late_loss", "number?", "where loss_floor is: the mean of the last tenth of the losses",
     [](auto& r) { return report::only_if(r.floor.has_value(), late_loss(r.losses)); }, false},
    {"loss_floor", "number", "made text: nats per byte below which no expected loss lies",
     [](auto& r) { return r.floor; }, false},
}};

namespace {

struct recorded_run {
    const training& of;
};
constexpr std::array recorded_run_members = std::to_array<report::declared<recorded_run>>({
    {"request", "{string}", "every option of the run, by name, as text",
     [](auto& r) {
         report::record request;
         for (const auto& [key, value] : to_text(r.of.request())) request.emplace_back(key, value);
         return request;
     }},
    {"seed", "count", "", [](auto& r) { return r.of.request().seed; }},
});

struct recorded_step {
    std::size_t number;
    const step_figures& figures;
    const report::record* probe;  // with its step first; null: none was taken
};
constexpr std::array recorded_step_members = std::to_array<report::declared<recorded_step>>({
    {"step", "ordinal", "from 1", [](auto& s) { return s.number; }},
    {"loss", "number?", "before the update; null: not finite",
     [](auto& s) { return loss_value(s.figures.loss); }},
    {"gradient_norm", "amount?", "",
     [](auto& s) { return report::finite_or_null(s.figures.gradient_norm); }},
    {"probe", "#probe", "the gradient beside that in float32 at the same parameters and batch",
     [](auto& s) {
         if (s.probe == nullptr) return report::value();
         return report::value(report::record(s.probe->begin() + 1, s.probe->end()));
     },
     false},
});

}  // namespace

report::document run_document(const training& t, const report::record& head) {
    report::document d;
    d.head = head;
    report::append(d.head, recorded_run_members, {t});
    report::list steps;
    std::size_t probe = 0;
    for (std::size_t i = 0; i < t.history().size(); ++i) {
        const bool probed =
            probe < t.probes().size() &&
            report::number_of(t.probes()[probe], "step") == static_cast<double>(i + 1);
        steps.emplace_back(
            report::written(recorded_step_members,
                            {i + 1, t.history()[i], probed ? &t.probes()[probe++] : nullptr}));
    }
    d.tail.emplace_back("steps", std::move(steps));
    d.results = std::vector<report::record>{report::written(run_members, figures_of(t))};
    return d;
}

report::document_schema run_schema() {
    return report::document_schema("mx.run/1", "mx train: run.json",
                                   "A training: what was asked for, and every step.")
        .members(recorded_run_members)
        .member({"results", "[#run]", "one: the run in short"})
        .member({"steps", "[#step]", "an update each"})
        .define("run", run_members)
        .define("step", recorded_step_members)
        .define("probe", report::member_list().add(measures_members).add(probe_members))
        .define("measures", measures_members)
        .define("redraws", redraws_members)
        .define("blocks", block_figures_members)
        .define("gains", gain_sizes_members);
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
