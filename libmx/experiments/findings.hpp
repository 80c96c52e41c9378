// SPDX-License-Identifier: Apache-2.0
// A study carried out: every run of every seed, paired with its baseline.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libmx/base/notices.hpp"
#include "libmx/base/statistics.hpp"
#include "libmx/experiments/budget.hpp"
#include "libmx/experiments/operand_error.hpp"
#include "libmx/experiments/study.hpp"
#include "libmx/experiments/survival.hpp"
#include "libmx/report/record.hpp"

namespace mx::experiments {

using base::interval;

/// The loss of a run is the mean over this last share of its steps; over half of the steps that a
/// configuration has to itself where these are fewer. Where it learns from a file, its loss is that
/// of the bytes held out, after the last step.
inline constexpr double late_share = 0.3;
/// The fixed loss of yardstick::steps: the baseline's own after this share of the steps. Losses are
/// means over a window of a tenth of the steps.
inline constexpr double target_share = 0.6;
inline constexpr double window_share = 0.1;
inline constexpr double significance = 0.05;

struct study_plan {
    const study* of = nullptr;
    lab::run_request request;  ///< but for seed and precision
    std::vector<std::uint64_t> seeds;
    std::string folder;       ///< where runs are kept; "": nowhere
    report::record run_head;  ///< of their run.json
    int threads = 1;
    std::string backend;                     ///< as in lab::execution_context
    std::shared_ptr<base::notices> notices;  ///< likewise
    const std::atomic<bool>* cancel = nullptr;
    std::function<void()> on_step;  ///< after each step of any run; from several threads
};

/// What became of a configuration, or of a baseline (that has no gap).
struct finding {
    configuration of;
    bool is_baseline = false;
    std::uint64_t from_step = 0;
    std::size_t runs = 0, unstable = 0, high_ends = 0;
    std::optional<double> loss;  ///< mean over its stable runs
    /// Gaps to the baseline of the same seed, both stable; by seed, none where one is not.
    std::vector<std::optional<double>> gaps;
    std::optional<paired_gap> gap;
    std::optional<double> gap_share;  ///< of the baseline's loss
    /// yardstick::steps, but for baselines: seeds whose baseline is stable, how many of their runs
    /// reach its loss, and the extra steps they take, as a share, only where all do.
    std::size_t targets = 0;
    std::optional<std::size_t> reached;
    std::optional<paired_gap> extra;
    std::optional<operand_error> error;
    /// Of what is measured, adjusted by Holm's method for the configurations of the study.
    std::optional<double> adjusted_p = {};
    const std::optional<paired_gap>& measured() const;  ///< extra, or else gap
    bool significant() const;                           ///< by adjusted_p, at `significance`
    bool drawn() const;  ///< whether its varied recipe rounds stochastically
};

/// How errors and gaps go together over the configurations of a group.
struct correlation {
    std::string group, over;  ///< over: formats, deterministic, all
    std::size_t recipes = 0;
    std::optional<double> spearman, power;
    std::optional<interval> spearman_interval, power_interval;
};

/// A configuration beside another one of its group, by the same seeds.
struct pairing {
    std::string group, name, other;
    std::optional<double> error_ratio, gain, other_gain;  ///< of those whose errors are measured
    std::optional<paired_gap> gap;                        ///< its loss less the other's
    bool drawn = false;  ///< whether its varied recipe rounds stochastically and the other does not
    /// Adjusted for the twins of the study; pairs that were searched for have none.
    std::optional<double> adjusted_p = {};
    bool significant() const;  ///< by adjusted_p, or else by the gap's own, at `significance`
};

struct findings {
    std::size_t trained = 0;  ///< runs in all
    std::vector<finding> all;
    std::vector<correlation> correlations;
    std::vector<pairing> twins;  ///< configurations that have one, with it
    /// Recipes whose error is at least a twentieth larger than another's of the group and whose
    /// loss is nevertheless significantly smaller; the clearest ten of each group. Among so
    /// many pairs (`pairs`) some are so by chance: one in forty of those that are alike.
    std::vector<pairing> inversions;
    std::size_t pairs = 0;
    std::optional<double> agreement;  ///< Spearman with what is published
};

/// Steps of all runs together.
std::uint64_t steps_of(const study_plan& plan);

/// Trains and compares. The same bits for any number of threads. Throws base::error: usage, output,
/// cancelled.
findings carry_out(const study_plan& plan);

/// The settings whose names the folders of kept runs are.
std::string folder_name(const distinct_run& r, std::uint64_t steps);

/// The first step, from 1, at which the mean of the `window` losses up to it is at most `target`;
/// none where there is none.
std::optional<std::uint64_t> first_reach(const std::vector<float>& losses, std::size_t window,
                                         double target);

}  // namespace mx::experiments
