// SPDX-License-Identifier: Apache-2.0
#include "libmx/experiments/findings.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <system_error>

#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/student.hpp"
#include "libmx/lab/curves.hpp"
#include "libmx/lab/run_folder.hpp"

namespace mx::experiments {
namespace {

namespace fs = std::filesystem;

// A folder that goes when this does: of dumps that nobody asked for.
class scratch_folder {
  public:
    scratch_folder() {
        std::string name = (fs::temp_directory_path() / "mx-study-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) {
            throw base::error(base::error_kind::output,
                              fmt::format("cannot make a folder: {}", std::strerror(errno)),
                              {name, {}, {}});
        }
        path_ = name;
    }
    ~scratch_folder() {
        std::error_code failure;
        fs::remove_all(path_, failure);
    }
    scratch_folder(const scratch_folder&) = delete;
    scratch_folder& operator=(const scratch_folder&) = delete;
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

struct curve {
    std::vector<float> losses;
    std::optional<double> held_out;  // where some of a text is
    lifetime life;
    bool ends_high = false;
};

std::uint64_t begin_of(const distinct_run& r, std::uint64_t steps) {
    return static_cast<std::uint64_t>(r.from * static_cast<double>(steps));
}

lab::run_request request_of(const study_plan& plan, const distinct_run& r, std::uint64_t seed) {
    lab::run_request request = plan.request;
    request.seed = seed;
    request.settings = lab::parse_settings(r.from > 0 ? r.before : r.settings);
    if (r.from > 0) {
        request.interventions.push_back({begin_of(r, request.steps), {}});
        std::vector<lab::setting>& changes = request.interventions.back().settings;
        changes = lab::parse_settings("scheme=fp32 " + r.settings);
    }
    return request;
}

// The mean from step `from` (counted from 0) on.
double mean_from(const std::vector<float>& losses, std::size_t from) {
    double sum = 0;
    for (std::size_t i = from; i < losses.size(); ++i) sum += static_cast<double>(losses[i]);
    return sum / static_cast<double>(losses.size() - from);
}

std::size_t late_from(std::size_t steps, double begins) {
    const double late = std::min(late_share, (1 - begins) / 2);
    return std::min(steps - 1, static_cast<std::size_t>((1 - late) * static_cast<double>(steps)));
}

// Trains all runs of all seeds, and knows them afterwards.
class laboratory {
  public:
    explicit laboratory(const study_plan& plan)
        : plan_(plan),
          configurations_(plan.of->configurations()),
          runs_(runs_of(configurations_)) {}

    findings carry_out();

  private:
    std::size_t at(const distinct_run& r) const {
        return static_cast<std::size_t>(std::ranges::find(runs_, r) - runs_.begin());
    }
    const curve& curve_of(std::size_t run, std::size_t seed) const {
        return curves_[run * plan_.seeds.size() + seed];
    }
    std::string folder_of(std::size_t run, std::size_t seed) const {
        const std::string& root = plan_.folder.empty() ? scratch_.path() : plan_.folder;
        return (fs::path(root) / folder_name(runs_[run], plan_.request.steps) /
                fmt::format("seed-{}", plan_.seeds[seed]))
            .string();
    }
    void train_all();
    finding finding_of(const configuration& c, bool is_baseline) const;
    void find_gap(finding& f, std::size_t run, std::size_t baseline) const;
    void find_extra(finding& f, std::size_t run, std::size_t baseline) const;
    void measure_errors(std::vector<finding>& all) const;

    const study_plan& plan_;
    std::vector<configuration> configurations_;
    std::vector<distinct_run> runs_;
    std::vector<curve> curves_;  // by run, then by seed
    scratch_folder scratch_;
};

void laboratory::train_all() {
    // Baselines whose operands are looked at leave a dump of their last step.
    std::vector<bool> dumped(runs_.size());
    for (const configuration& c : configurations_) {
        if (c.varied != operand::none) dumped[at({c.baseline, "", 0})] = true;
    }
    const std::size_t seeds = plan_.seeds.size();
    curves_.resize(runs_.size() * seeds);
    // A run that contradicts itself shows before hours are spent.
    for (const distinct_run& r : runs_) lab::check(request_of(plan_, r, plan_.seeds.front()));
    base::parallel_for(curves_.size(), plan_.threads, plan_.cancel, [&](std::uint64_t i, int) {
        const std::size_t run = static_cast<std::size_t>(i) / seeds, seed = i % seeds;
        lab::training t(request_of(plan_, runs_[run], plan_.seeds[seed]),
                        lab::execution_context(1, plan_.backend, plan_.notices.get()));
        lab::run_plan how;
        if (!plan_.folder.empty() || dumped[run]) {
            how.folder = folder_of(run, seed);
            lab::begin_folder(how.folder);
        }
        if (dumped[run]) how.dumps = {plan_.request.steps};
        how.checkpoint_every = 0;
        how.head = plan_.run_head;
        how.cancel = plan_.cancel;
        if (plan_.on_step) how.on_step = [&](const lab::training&) { plan_.on_step(); };
        lab::run(t, how);
        curve& c = curves_[i];
        c.held_out = t.held_out_loss();
        for (const lab::step_figures& s : t.history()) c.losses.push_back(s.loss);
        const lab::instability_rule rule = lab::rule_of(plan_.request);
        const std::vector<float> judged = lab::judged_losses(c.losses, t.diverged());
        const auto broke = lab::first_instability(judged, rule);
        c.ends_high = lab::rise_at_end(judged, rule).value_or(0) > rule.margin;
        c.life = {broke.value_or(c.losses.size()), broke.has_value()};
    });
    base::stop_if(plan_.cancel);
}

void laboratory::find_gap(finding& f, std::size_t run, std::size_t baseline) const {
    const std::size_t from = late_from(plan_.request.steps, f.of.from);
    std::vector<double> losses, gaps, before;
    for (std::size_t seed = 0; seed < plan_.seeds.size(); ++seed) {
        const curve &own = curve_of(run, seed), &other = curve_of(baseline, seed);
        f.gaps.emplace_back();
        f.unstable += own.life.unstable ? 1u : 0u;
        f.high_ends += own.ends_high ? 1u : 0u;
        if (own.life.unstable) continue;
        losses.push_back(own.held_out.value_or(mean_from(own.losses, from)));
        if (other.life.unstable || f.is_baseline) continue;
        before.push_back(other.held_out.value_or(mean_from(other.losses, from)));
        gaps.push_back(losses.back() - before.back());
        f.gaps.back() = gaps.back();
    }
    f.runs = plan_.seeds.size();
    if (!losses.empty()) f.loss = base::estimate_of(losses).mean;
    f.gap = gap_of(gaps);
    if (f.gap) f.gap_share = f.gap->mean / base::estimate_of(before).mean;
}

void laboratory::find_extra(finding& f, std::size_t run, std::size_t baseline) const {
    const auto steps = static_cast<double>(plan_.request.steps);
    const auto window = std::max<std::size_t>(1, static_cast<std::size_t>(window_share * steps));
    const auto end = std::max(window, static_cast<std::size_t>(target_share * steps));
    std::vector<double> extra;
    for (std::size_t seed = 0; seed < plan_.seeds.size(); ++seed) {
        const curve &own = curve_of(run, seed), &other = curve_of(baseline, seed);
        if (other.life.unstable) continue;
        ++f.targets;
        const std::vector<float> up_to(other.losses.begin(),
                                       other.losses.begin() + static_cast<std::ptrdiff_t>(end));
        const double target = mean_from(up_to, end - window);
        const auto before = first_reach(other.losses, window, target);
        const auto reached = first_reach(own.losses, window, target);
        if (!before || !reached) continue;
        extra.push_back(static_cast<double>(*reached) / static_cast<double>(*before) - 1);
    }
    f.reached = extra.size();
    if (extra.size() == f.targets) f.extra = gap_of(extra);
}

finding laboratory::finding_of(const configuration& c, bool is_baseline) const {
    finding f;
    f.of = c;
    f.is_baseline = is_baseline;
    const std::size_t baseline = at({c.baseline, "", 0});
    std::size_t run = baseline;
    if (!is_baseline) {
        run = at({c.settings, c.from > 0 ? c.baseline : "", c.from});
        f.from_step = begin_of(runs_[run], plan_.request.steps);
    }
    find_gap(f, run, baseline);
    if (!is_baseline && plan_.of->measure == yardstick::steps) find_extra(f, run, baseline);
    return f;
}

void laboratory::measure_errors(std::vector<finding>& all) const {
    const std::vector<lab::layer_name> layers = lab::layers_of(plan_.request);
    base::parallel_for(all.size(), plan_.threads, plan_.cancel, [&](std::uint64_t i, int) {
        finding& f = all[i];
        if (f.is_baseline || f.of.varied == operand::none) return;
        lab::execution_context on(1, plan_.backend, plan_.notices.get());
        const lab::operand_rule rule = lab::parse_rule(f.of.recipe);
        const std::size_t baseline = at({f.of.baseline, "", 0});
        operand_error sum;
        double many = 0;
        for (std::size_t seed = 0; seed < plan_.seeds.size(); ++seed) {
            if (curve_of(baseline, seed).life.unstable) continue;
            const fs::path dump = fs::path(folder_of(baseline, seed)) /
                                  fmt::format("dump-{:06}.safetensors", plan_.request.steps);
            const operand_error one = error_of(on.host(), lab::tensor_file(dump.string()), layers,
                                               f.of.varied, rule, plan_.seeds[seed]);
            sum.rmse_over_rms += one.rmse_over_rms;
            sum.rmse_over_amax += one.rmse_over_amax;
            sum.gain += one.gain;
            sum.rmse_over_rms_all += one.rmse_over_rms_all;
            many += 1;
        }
        if (many == 0) return;
        f.error = operand_error{sum.rmse_over_rms / many, sum.rmse_over_amax / many,
                                sum.gain / many, sum.rmse_over_rms_all / many};
    });
}

void add_correlations(const std::vector<finding>& all, findings& to) {
    struct choice {
        const char* over;
        bool (*takes)(const finding& f);
    };
    constexpr std::array choices{
        choice{"formats", [](const finding& f) { return f.of.is_format; }},
        choice{"deterministic", [](const finding& f) { return !f.drawn(); }},
        choice{"all", [](const finding&) { return true; }},
    };
    std::vector<std::string> groups;
    for (const finding& f : all) {
        if (!f.error || std::ranges::find(groups, f.of.group) != groups.end()) continue;
        groups.push_back(f.of.group);
    }
    for (const std::string& group : groups) {
        std::size_t before = 0;
        for (const choice& c : choices) {
            std::vector<double> errors, gaps;
            for (const finding& f : all) {
                if (f.of.group != group || !f.error || !f.gap || !c.takes(f)) continue;
                errors.push_back(f.error->rmse_over_rms);
                gaps.push_back(f.gap->mean);
            }
            if (errors.size() == before) continue;  // the same recipes again
            before = errors.size();
            correlation r{group,
                          c.over,
                          errors.size(),
                          base::spearman(errors, gaps),
                          base::power_law(errors, gaps),
                          {},
                          {}};
            if (r.spearman) r.spearman_interval = base::bootstrap(base::spearman, errors, gaps, 1);
            if (r.power) r.power_interval = base::bootstrap(base::power_law, errors, gaps, 1);
            to.correlations.push_back(std::move(r));
        }
    }
}

// Adjusts the p-values of what is compared, `of` one, by their number.
template <typename Compared, typename Of>
void adjust(std::vector<Compared>& all, const Of& of) {
    std::vector<double> p;
    for (const Compared& one : all) {
        if (const auto& g = of(one)) p.push_back(g->p);
    }
    const std::vector<double> adjusted = holm(p);
    std::size_t at = 0;
    for (Compared& one : all) {
        if (of(one)) one.adjusted_p = adjusted[at++];
    }
}

pairing beside(const finding& f, const finding& other) {
    std::vector<double> differences;
    for (std::size_t i = 0; i < f.gaps.size(); ++i) {
        if (f.gaps[i] && other.gaps[i]) differences.push_back(*f.gaps[i] - *other.gaps[i]);
    }
    pairing p;
    p.group = f.of.group;
    p.name = f.of.name;
    p.other = other.of.name;
    p.gap = gap_of(differences);
    p.drawn = f.drawn() && !other.drawn();
    if (f.error && other.error && other.error->rmse_over_rms > 0) {
        p.error_ratio = f.error->rmse_over_rms / other.error->rmse_over_rms;
        p.gain = f.error->gain;
        p.other_gain = other.error->gain;
    }
    return p;
}

void add_twins(const std::vector<finding>& all, findings& to) {
    for (const finding& f : all) {
        if (f.of.twin.empty()) continue;
        const auto twin = std::ranges::find_if(all, [&](const finding& other) {
            return other.of.group == f.of.group && other.of.name == f.of.twin;
        });
        if (twin != all.end()) to.twins.push_back(beside(f, *twin));
    }
    adjust(
        to.twins, [](const pairing& p) -> const auto& { return p.gap; });
}

void add_inversions(const std::vector<finding>& all, findings& to) {
    constexpr double larger = 1.05;
    constexpr std::size_t most = 10;
    std::vector<std::vector<pairing>> by_group;
    for (const finding& f : all) {
        for (const finding& other : all) {
            if (!f.error || other.of.group != f.of.group) continue;
            pairing p = beside(f, other);
            if (!p.error_ratio || !(*p.error_ratio >= larger) || !p.gap) continue;
            ++to.pairs;
            if (!p.significant() || p.gap->mean > 0) continue;
            if (by_group.empty() || by_group.back().front().group != p.group)
                by_group.emplace_back();
            by_group.back().push_back(std::move(p));
        }
    }
    const auto clearness = [](const pairing& p) {
        return -p.gap->mean / (p.gap->high - p.gap->mean);
    };
    for (std::vector<pairing>& group : by_group) {
        std::ranges::stable_sort(group, std::greater{}, clearness);
        group.resize(std::min(group.size(), most), group.front());
        to.inversions.insert(to.inversions.end(), group.begin(), group.end());
    }
}

findings laboratory::carry_out() {
    train_all();
    findings found;
    found.trained = curves_.size();
    std::string group;
    for (const configuration& c : configurations_) {
        if (c.group != group) {
            configuration baseline{c.group, "baseline", c.baseline, c.baseline};
            found.all.push_back(finding_of(baseline, true));
            group = c.group;
        }
        found.all.push_back(finding_of(c, false));
    }
    adjust(
        found.all, [](const finding& f) -> const auto& { return f.measured(); });
    measure_errors(found.all);
    add_correlations(found.all, found);
    add_twins(found.all, found);
    add_inversions(found.all, found);
    std::vector<double> ours, published;
    for (const finding& f : found.all) {
        const auto& measured = plan_.of->measure == yardstick::gap ? f.gap : f.extra;
        if (!f.of.published || !measured) continue;
        ours.push_back(measured->mean);
        published.push_back(*f.of.published);
    }
    found.agreement = base::spearman(ours, published);
    return found;
}

}  // namespace

const std::optional<paired_gap>& finding::measured() const { return extra ? extra : gap; }

bool finding::significant() const { return adjusted_p && *adjusted_p < significance; }

bool finding::drawn() const { return of.recipe.find("stochastic") != std::string::npos; }

bool pairing::significant() const {
    return adjusted_p ? *adjusted_p < significance : gap && gap->p < significance;
}

std::string folder_name(const distinct_run& r, std::uint64_t steps) {
    std::string name = r.settings.empty() ? "fp32" : r.settings;
    if (r.from > 0) name = fmt::format("{} at {} {}", r.before, begin_of(r, steps), name);
    for (char& c : name) {
        const bool kept =
            std::strchr("=.-", c) != nullptr || std::isalnum(static_cast<int>(c)) != 0;
        if (!kept) c = '_';
    }
    return name;
}

std::optional<std::uint64_t> first_reach(const std::vector<float>& losses, std::size_t window,
                                         double target) {
    for (std::size_t end = window; end <= losses.size(); ++end) {
        double sum = 0;
        for (std::size_t i = end - window; i < end; ++i) sum += static_cast<double>(losses[i]);
        if (sum / static_cast<double>(window) <= target) return end;
    }
    return std::nullopt;
}

std::uint64_t steps_of(const study_plan& plan) {
    return plan.request.steps * plan.seeds.size() * runs_of(plan.of->configurations()).size();
}

findings carry_out(const study_plan& plan) { return laboratory(plan).carry_out(); }

}  // namespace mx::experiments
