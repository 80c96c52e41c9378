// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/rosetta/top_frequencies.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "libmx/format/decode.hpp"

namespace mx::rosetta {
namespace {

constexpr int first_scale = 2, last_scale = 252;
constexpr double alternative_share = 1.0 / 16;
constexpr double allowance = 2.0 / 3;         // of the expected number: densities may have minima
constexpr double unlikely = 13.815510557964;  // -ln 1e-6

// -ln of Chernoff's bound on the probability of `found` or fewer if `mean` are expected.
double surprise(double mean, std::uint64_t found) {
    const auto n = static_cast<double>(found);
    if (n >= mean) return 0;
    return mean - n + (found == 0 ? 0 : n * std::log(n / mean));
}

}  // namespace

top_counts::top_counts(const format::element_format& f)
    : codes_(static_cast<std::size_t>(f.codes())), blocks_(256 * codes_) {}

void top_counts::add(std::uint8_t scale_code, const block_top& top) {
    const int largest = std::max(top.positive, top.negative);
    if (largest == 0 || top.has_nan || scale_code < first_scale - 1 ||
        scale_code > last_scale + 1) {
        return;
    }
    ++blocks_[scale_code * codes_ + static_cast<std::size_t>(largest)];
}

void top_counts::merge(const top_counts& other) {
    for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i] += other.blocks_[i];
}

std::uint64_t top_counts::with(int magnitude, int last_scale) const {
    std::uint64_t count = 0;
    for (int scale = 0; scale <= last_scale; ++scale) count += at(scale, magnitude);
    return count;
}

double value_of_top(const format::element_format& f, const top_frequency& t) {
    return std::abs(static_cast<double>(format::decode(f, static_cast<std::uint32_t>(t.code))));
}

std::vector<top_frequency> frequencies_of(const producible& recipe, const top_counts& counts) {
    const std::vector<top_interval>& intervals = recipe.intervals();
    const auto n = static_cast<int>(intervals.size());
    std::vector<top_frequency> all;
    if (const auto& two = recipe.alternatives()) {
        const std::uint64_t chosen =
            counts.with(two->four) + counts.with(two->six, two->last_scale_of_six);
        for (const int code : {two->four, two->six}) {
            all.push_back(
                {code, alternative_share * static_cast<double>(chosen), counts.with(code)});
        }
    }
    for (const top_interval& i : intervals) all.push_back({i.code, 0, 0});
    // Blocks per octave. Interval -1 is the last one of the previous scale, n the first of the
    // next.
    const auto neighbour = [&](int scale, int j) {
        if (j < 0) return std::pair(scale - 1, n - 1);
        return j == n ? std::pair(scale + 1, 0) : std::pair(scale, j);
    };
    const auto per_octave = [&](std::pair<int, int> at) {
        const top_interval& i = intervals[static_cast<std::size_t>(at.second)];
        return static_cast<double>(counts.at(at.first, i.code)) / i.octaves;
    };
    for (int scale = first_scale; scale <= last_scale; ++scale) {
        for (int j = 0; j < n; ++j) {
            top_frequency& f = all[static_cast<std::size_t>(j)];
            f.found += counts.at(scale, f.code);
            f.least +=
                intervals[static_cast<std::size_t>(j)].octaves *
                std::min(per_octave(neighbour(scale, j - 1)), per_octave(neighbour(scale, j + 1)));
        }
    }
    return all;
}

const top_frequency* evidence_against(const std::vector<top_frequency>& all) {
    const top_frequency* most = nullptr;
    double largest = unlikely;
    for (const top_frequency& f : all) {
        const double s = surprise(allowance * f.least, f.found);
        if (s <= largest) continue;
        largest = s;
        most = &f;
    }
    return most;
}

}  // namespace mx::rosetta
