// SPDX-License-Identifier: Apache-2.0
// Results files as inputs of a command.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/report/json_reader.hpp"

namespace mx::analysis {

/// A results file with its path and size.
struct results_input {
    std::string path;
    std::uint64_t bytes = 0;
    report::results_file content;
};

/// Reads the results that a command wrote to `path`, which may be a pipe, or "-" for standard
/// input. Throws base::error (input).
results_input open_results(const std::string& path, const report::read_options& options = {});

/// Whether `path` is a local file that begins like results: an object of JSON text whose first 4
/// KiB name a schema of mx. False for what cannot be read, and for a pipe, of which nothing is
/// read.
bool looks_like_results(const std::string& path);

/// Opens results: open_results, or a function that has them in memory.
using results_opener =
    std::function<results_input(const std::string& path, const report::read_options& options)>;

/// As open_results, for every path. Each must be results of analyze, compare or cluster: one record
/// per tensor and recipe. `more` is the kind of another accepted document, which a command of
/// that name writes when it compares dumps (mx.diff: "diff");
/// `command` is named in messages. Throws base::error (usage) for two paths that are "-".
std::vector<results_input> open_analyses(const std::vector<std::string>& paths,
                                         const std::string& command,
                                         const report::read_options& options = {},
                                         std::string_view more = {},
                                         const results_opener& open = open_results);

}  // namespace mx::analysis
