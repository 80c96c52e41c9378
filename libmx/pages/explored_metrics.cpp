// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/explored_metrics.hpp"

#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "libmx/metrics/metrics.hpp"

namespace mx::pages {
namespace {

// Which of the metrics a page shows, what they are called there, and which end of them is bad.
struct shown_metric {
    std::string_view name;
    std::string_view title;
    bool larger_is_worse;
};

constexpr std::array shown_metrics{
    shown_metric{"sqnr_db", "SQNR", false},
    shown_metric{"rmse", "R-MSE", true},
    shown_metric{"nrmse", "R-MSE / RMS", true},
    shown_metric{"clamp_rate", "clamped", true},
    shown_metric{"overflow_rate", "overflow", true},
    shown_metric{"underflow_rate", "underflow", true},
    shown_metric{"saturated_block_rate", "saturated blocks", true},
    shown_metric{"gain", "gain", false},
    shown_metric{"cosine", "cosine", false},
};

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

}  // namespace

explored_metrics::explored_metrics(const compare::sweep_plan& plan, std::size_t rows)
    : cell_of_(plan.recipes.size()),
      rows_(rows),
      seen_(plan.recipes.size(), std::vector<bool>(rows)) {
    for (std::size_t c = 0; c < plan.cells.size(); ++c) {
        runs_.push_back(plan.cells[c].runs);
        for (const std::size_t run : plan.cells[c].runs) cell_of_[run] = c;
    }
    for (const shown_metric& m : shown_metrics) {
        const metrics::metric& row = *metrics::find(m.name);
        report::explorer::metric to;
        to.name = std::string(m.name);
        to.title = std::string(m.title);
        to.share = row.unit == "share";
        to.unit = to.share ? "" : std::string(row.unit);
        to.definition = std::string(row.definition);
        to.larger_is_worse = m.larger_is_worse;
        to.values.assign(plan.cells.size(), std::vector<float>(rows));
        metrics_.push_back(std::move(to));
    }
}

void explored_metrics::add(std::size_t run, std::size_t row, const analysis::result& r) {
    if (seen_[run][row]) return;
    seen_[run][row] = true;
    const std::size_t cell = cell_of_[run];
    for (report::explorer::metric& m : metrics_) {
        m.values[cell][row] += static_cast<float>(r.*metrics::find(m.name)->member /
                                                  static_cast<double>(runs_[cell].size()));
    }
}

std::vector<report::explorer::metric> explored_metrics::take() {
    for (std::size_t cell = 0; cell < runs_.size(); ++cell) {
        for (std::size_t row = 0; row < rows_; ++row) {
            bool all = true;
            for (const std::size_t run : runs_[cell]) all = all && seen_[run][row];
            if (all) continue;
            for (report::explorer::metric& m : metrics_) {
                m.values[cell][row] = static_cast<float>(undefined);
            }
        }
    }
    return std::move(metrics_);
}

}  // namespace mx::pages
