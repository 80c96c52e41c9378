// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "libmx/base/natural_order.hpp"
#include "libmx/base/parsed.hpp"
#include "libmx/base/status.hpp"

namespace mx::diff {
namespace {

using base::less_number;
using base::runs_of;

// The only number in which all paths differ.
std::optional<std::vector<std::string>> numbers_of(const std::vector<std::string>& paths) {
    std::vector<std::vector<std::string>> all;
    for (const std::string& p : paths) all.push_back(runs_of(p));
    const std::vector<std::string>& first = all.front();
    std::optional<std::size_t> place;
    for (const std::vector<std::string>& runs : all) {
        if (runs.size() != first.size()) return std::nullopt;
        for (std::size_t i = 0; i < runs.size(); ++i) {
            if (runs[i] == first[i]) continue;
            if (i % 2 == 0 || (place && *place != i)) return std::nullopt;
            place = i;
        }
    }
    if (!place) return std::nullopt;
    std::vector<std::string> numbers;
    for (const std::vector<std::string>& runs : all) numbers.push_back(runs[*place]);
    return numbers;
}

// A path split into text and numbers: see runs_of.
struct numbered_path {
    std::string path;
    std::vector<std::string> runs;
};

// Compares paths by the first number in which they differ.
bool less_path(const numbered_path& a, const numbered_path& b) {
    return std::lexicographical_compare(a.runs.begin(), a.runs.end(), b.runs.begin(), b.runs.end(),
                                        less_number);
}

// Whether `b` can follow `a` in a series: the same text, no number is smaller, and one is larger.
bool can_follow(const numbered_path& b, const numbered_path& a) {
    if (a.runs.size() != b.runs.size()) return false;
    bool grew = false;
    for (std::size_t i = 0; i < a.runs.size(); ++i) {
        if (i % 2 == 0 ? a.runs[i] != b.runs[i] : less_number(b.runs[i], a.runs[i])) return false;
        grew = grew || less_number(a.runs[i], b.runs[i]);
    }
    return grew;
}

std::vector<std::uint64_t> growing(const std::vector<std::string>& labels) {
    std::vector<std::uint64_t> steps;
    for (const std::string& label : labels) {
        const auto n = base::parsed<std::uint64_t>(label);
        if (!n || (!steps.empty() && *n <= steps.back())) return {};
        steps.push_back(*n);
    }
    return steps;
}

}  // namespace

std::vector<std::string> by_number(const std::vector<std::string>& paths) {
    std::vector<numbered_path> sorted;
    for (const std::string& path : paths) sorted.push_back({path, runs_of(path)});
    std::ranges::stable_sort(sorted, less_path);
    std::vector<std::string> ordered;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        if (i > 0 && !can_follow(sorted[i], sorted[i - 1])) return paths;
        ordered.push_back(std::move(sorted[i].path));
    }
    return ordered;
}

dump_labels label_dumps(const std::vector<std::string>& paths,
                        const std::vector<std::string>& given) {
    if (!given.empty() && given.size() != paths.size()) {
        base::refuse("--labels: {} for {} dumps; give one for each, in their order", given.size(),
                     paths.size());
    }
    dump_labels labels;
    labels.text = given;
    if (given.empty() && !paths.empty()) labels.text = numbers_of(paths).value_or(paths);
    labels.steps = growing(labels.text);
    // "0100" is step 100.
    if (given.empty()) {
        for (std::size_t i = 0; i < labels.steps.size(); ++i) {
            labels.text[i] = std::to_string(labels.steps[i]);
        }
    }
    return labels;
}

}  // namespace mx::diff
