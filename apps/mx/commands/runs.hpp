// SPDX-License-Identifier: Apache-2.0
// What mx runs knows of the runs that it compares, and its figures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libmx/lab/survival.hpp"
#include "libmx/report/figure.hpp"

namespace mx::app {

/// Gains of a norm as a probe found them (lab::gains_record).
struct told_gains {
    std::string tensor;
    double least, median, largest;
    std::optional<double> zone_from;
};

struct told_probe {
    std::uint64_t step;
    double loss;
    std::optional<double> zeta;
    std::vector<told_gains> gains;
};

/// A run as its run.json tells it.
struct told_run {
    std::string path, group, pair;  ///< pair: what else than the group makes it what it is
    std::string status;
    std::vector<float> losses;
    std::vector<std::uint64_t> interventions;
    std::vector<told_probe> probes;
    lab::lifetime life;
    std::optional<double> late_loss;  ///< mean of the last 30 % of the steps
};

/// Runs with the same precision and interventions.
struct run_group {
    std::string name;
    std::vector<const told_run*> runs;
    std::vector<lab::lifetime> lives() const;
};

/// Shares of stable runs, losses, and as far as probes were taken: zeta over steps and against the
/// loss, and where gains were beside the clamp zone.
std::vector<report::figure> figures_of_runs(const std::vector<told_run>& runs,
                                            const std::vector<run_group>& groups);

}  // namespace mx::app
