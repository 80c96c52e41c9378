// SPDX-License-Identifier: Apache-2.0
// What the dumps of a run are called, and which training steps they are of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mx::diff {

struct dump_labels {
    std::vector<std::string> text;     ///< one per dump
    std::vector<std::uint64_t> steps;  ///< one per dump, growing; empty where they are unknown
};

/// `paths` in the order of the numbers in their names, step200 before step1000, where they differ
/// in numbers only and these can grow from path to path (epoch2-step100, epoch10-step300);
/// otherwise as they are.
std::vector<std::string> by_number(const std::vector<std::string>& paths);

/// The labels `given`; without them the numbers of paths that differ in one number only, as in
/// step100.safetensors and step200.safetensors; otherwise the paths. Labels that are whole numbers
/// and grow are steps. Throws base::error (usage) when there is not one label per path.
dump_labels label_dumps(const std::vector<std::string>& paths,
                        const std::vector<std::string>& given);

}  // namespace mx::diff
