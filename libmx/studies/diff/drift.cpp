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

constexpr double straight = 0.99;        // r2
constexpr double longest_forecast = 10;  // in multiples of the observed range
constexpr std::size_t most_in_a_sentence = 6;

double step_of(const dump_labels& labels, std::size_t dump) {
    return labels.steps.empty() ? static_cast<double>(dump)
                                : static_cast<double>(labels.steps[dump]);
}

// "2 -> 3 -> 5"; only the ends if there are many.
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

mean_maxima mean_of(const dump_figures& d) {
    if (d.maxima == 0) return {};
    const auto mean = [&](const base::exact_sum& sum) {
        return sum.value() / static_cast<double>(d.maxima);
    };
    return {d.maxima, d.in_clamp_zone, mean(d.distance), mean(d.falling), mean(d.level)};
}

std::optional<drift_forecast> forecast_of(const std::vector<double>& distance,
                                          const dump_labels& labels, double least_r2) {
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

std::optional<coming_fall> fall_of(const move_figures& last, const dump_labels& labels) {
    const std::optional<double> falls = falls_left(last);
    if (!falls) return std::nullopt;
    const std::size_t n = labels.text.size();
    const double ahead = *falls * (step_of(labels, n - 1) - step_of(labels, n - 2));
    return coming_fall{last.falling_blocks,
                       labels.steps.empty() ? ahead : step_of(labels, n - 1) + ahead, ahead};
}

std::optional<drift_finding> drift_of(const std::string& tensor, const std::string& recipe,
                                      const std::vector<mean_maxima>& dumps,
                                      const dump_labels& labels,
                                      const std::optional<coming_fall>& fall) {
    drift_finding f{tensor, recipe, 0, {}, false, {}, {}, fall};
    const auto empty = [](const mean_maxima& d) { return d.blocks == 0; };
    if (dumps.size() < 2 || std::ranges::any_of(dumps, empty)) return std::nullopt;
    f.falling = dumps.back().level < dumps.front().level;
    for (const mean_maxima& d : dumps) {
        f.blocks = d.blocks;
        f.in_zone.push_back(d.in_zone);
        f.distance.push_back(f.falling ? d.falling : d.distance);
    }
    const bool entered =
        static_cast<double>(f.in_zone.back()) / static_cast<double>(f.blocks) >
        static_cast<double>(f.in_zone.front()) / static_cast<double>(dumps.front().blocks);
    const bool nearer =
        f.distance.back() < 0 && f.distance.back() - f.distance.front() >= least_drift_octaves;
    // Two dumps may be an original and its quantized copy, which is not a trend.
    const bool falls = fall && dumps.size() > 2;
    if (!entered && !nearer && !falls) return std::nullopt;
    f.forecast = forecast_of(f.distance, labels, straight);
    return f;
}

std::string sentence_of(const drift_finding& f, const dump_labels& labels) {
    const bool all_in = f.in_zone.back() == f.blocks;
    const auto when = [&](double ahead, double at) {
        return labels.steps.empty()
                   ? fmt::format("about {:.1f} dumps", ahead)
                   : fmt::format("about {:.0f} steps (near step {:.0f})", ahead, at);
    };
    // If some blocks fall, the mean may remain the same.
    const bool moves =
        f.distance.back() > f.distance.front() || f.in_zone.back() > f.in_zone.front();
    const char* const rising = all_in ? "rose into" : "rise toward";
    const char* const falling = all_in ? "fell into" : "fall toward";
    std::string text = fmt::format(
        "norm gains of {} {} the clamp zone of {}: {} of {} block{} in it, mean distance {} "
        "octaves",
        base::printable(f.tensor), !moves ? "lie near" : (f.falling ? falling : rising), f.recipe,
        path_of(f.in_zone, "{}"), f.blocks, f.blocks == 1 ? "" : "s",
        path_of(f.distance, "{:.3f}"));
    if (f.forecast) {
        text += fmt::format(
            ". At this pace the mean reaches it in {}: a line through {} dumps, r2 {:.3f}",
            when(f.forecast->ahead, f.forecast->at), f.distance.size(), f.forecast->r2);
    }
    if (f.fall) {
        text += fmt::format(
            ". At the pace of the last two dumps, {} of {} block maxima fall{} through a power of "
            "two into it, the first in {}",
            f.fall->blocks, f.blocks, f.fall->blocks == 1 ? "s" : "",
            when(f.fall->ahead, f.fall->at));
    }
    return text + ".";
}

}  // namespace mx::diff
