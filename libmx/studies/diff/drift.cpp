// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/drift.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "libmx/base/joined.hpp"
#include "libmx/base/status.hpp"

namespace mx::diff {
namespace {

constexpr double least_r2 = 0.99;
constexpr double longest_forecast = 10;  // times what was seen
constexpr std::size_t most_in_a_sentence = 6;

double step_of(const dump_labels& labels, std::size_t dump) {
    return labels.steps.empty() ? static_cast<double>(dump)
                                : static_cast<double>(labels.steps[dump]);
}

std::optional<drift_forecast> forecast_of(const std::vector<double>& distance,
                                          const dump_labels& labels) {
    const std::size_t n = distance.size();
    if (n < 3 || distance.back() >= 0) return std::nullopt;
    double mean_x = 0, mean_y = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (i > 0 && distance[i] <= distance[i - 1]) return std::nullopt;
        mean_x += step_of(labels, i) / static_cast<double>(n);
        mean_y += distance[i] / static_cast<double>(n);
    }
    double xx = 0, xy = 0, yy = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double x = step_of(labels, i) - mean_x;
        const double y = distance[i] - mean_y;
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    const double slope = xy / xx;
    const double r2 = xy * xy / (xx * yy);
    const double seen = step_of(labels, n - 1) - step_of(labels, 0);
    const double ahead = -distance.back() / slope;
    if (r2 < least_r2 || ahead > longest_forecast * seen) return std::nullopt;
    return drift_forecast{labels.steps.empty() ? ahead : step_of(labels, n - 1) + ahead, ahead, r2};
}

// "2 -> 3 -> 5", the ends only where there are many.
template <typename T>
std::string path_of(const std::vector<T>& values, const char* format) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values.size() > most_in_a_sentence && i > 0 && i + 1 < values.size()) continue;
        words.push_back(fmt::format(fmt::runtime(format), values[i]));
    }
    return base::joined(words, " -> ");
}

}  // namespace

std::optional<drift_finding> drift_of(const std::string& tensor, const std::string& recipe,
                                      const std::vector<dump_figures>& dumps,
                                      const dump_labels& labels) {
    drift_finding f{tensor, recipe, 0, {}, false, {}, {}};
    const auto mean = [](const base::exact_sum& sum, const dump_figures& of) {
        return sum.value() / static_cast<double>(of.maxima);
    };
    const auto empty = [](const dump_figures& d) { return d.maxima == 0; };
    if (dumps.size() < 2 || std::ranges::any_of(dumps, empty)) return std::nullopt;
    f.falling = mean(dumps.back().level, dumps.back()) < mean(dumps.front().level, dumps.front());
    for (const dump_figures& d : dumps) {
        f.blocks = d.maxima;
        f.in_zone.push_back(d.in_clamp_zone);
        f.distance.push_back(mean(f.falling ? d.falling : d.distance, d));
    }
    const bool entered =
        static_cast<double>(f.in_zone.back()) / static_cast<double>(f.blocks) >
        static_cast<double>(f.in_zone.front()) / static_cast<double>(dumps.front().maxima);
    const bool nearer =
        f.distance.back() < 0 && f.distance.back() - f.distance.front() >= least_drift_octaves;
    if (!entered && !nearer) return std::nullopt;
    f.forecast = forecast_of(f.distance, labels);
    return f;
}

std::string sentence_of(const drift_finding& f, const dump_labels& labels) {
    const bool all_in = f.in_zone.back() == f.blocks;
    std::string text = fmt::format(
        "norm gains of {} {} the clamp zone of {}: {} of {} block{} in it, mean distance {} "
        "octaves",
        base::printable(f.tensor),
        f.falling ? (all_in ? "fell into" : "fall toward") : (all_in ? "rose into" : "rise toward"),
        f.recipe, path_of(f.in_zone, "{}"), f.blocks, f.blocks == 1 ? "" : "s",
        path_of(f.distance, "{:.3f}"));
    if (!f.forecast) return text + ".";
    const std::string when = labels.steps.empty()
                                 ? fmt::format("about {:.1f} dumps", f.forecast->ahead)
                                 : fmt::format("about {:.0f} steps (near step {:.0f})",
                                               f.forecast->ahead, f.forecast->at);
    return text +
           fmt::format(
               ". At this pace the mean reaches it in {}: a line through {} dumps, r2 {:.3f}.",
               when, f.distance.size(), f.forecast->r2);
}

}  // namespace mx::diff
