// SPDX-License-Identifier: Apache-2.0
// Labels of dumps, and the training steps that they belong to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mx::diff {

struct dump_labels {
    std::vector<std::string> text;     ///< one per dump
    std::vector<std::uint64_t> steps;  ///< one per dump, growing; empty where they are unknown
};

/// `paths` sorted by the numbers in their names (step200 before step1000) if they differ only in
/// numbers and every number is non-decreasing in that order (epoch2-step100, epoch10-step300);
/// otherwise in the given order.
std::vector<std::string> by_number(const std::vector<std::string>& paths);

/// The labels `given`; if empty, the numbers in paths that differ in one number only, as in
/// step100.safetensors and step200.safetensors; otherwise the paths. Increasing integer labels are
/// steps. Throws base::error (usage) unless there is one label per path.
dump_labels label_dumps(const std::vector<std::string>& paths,
                        const std::vector<std::string>& given);

}  // namespace mx::diff
