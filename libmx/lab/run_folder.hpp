// SPDX-License-Identifier: Apache-2.0
// A training and the folder it leaves behind: run.json, checkpoints, dumps.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/lab/training.hpp"
#include "libmx/report/document.hpp"
#include "libmx/report/record.hpp"

namespace mx::lab {

inline constexpr std::string_view run_name = "run.json";

struct run_plan {
    std::string folder;                    ///< "": nothing is written
    std::uint64_t checkpoint_every = 500;  ///< steps between writing the latest state
    std::set<std::uint64_t> checkpoints;   ///< steps after which a copy is kept
    std::set<std::uint64_t> dumps;         ///< steps whose tensors are written
    report::record head;                   ///< of run.json: schema mx.run/1, and what made it
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(const training&)> on_step;
};

/// Makes the folder, for a new run. Throws base::error: usage where it holds a run already, output
/// where it cannot be made.
void begin_folder(const std::string& folder);

/// Runs to the end, to the first loss that is no number, or until `cancel` is raised; leaves the
/// latest state and run.json in the folder, each put in place whole. Throws base::error (output)
/// when something cannot be written; what was written before stays.
void run(training& t, const run_plan& plan);

/// What run.json says after `head`: the request, an entry per step with `step`, `loss` (null
/// where it is no number), `gradient_norm`, and `probe` where one was taken; `results` sums it up.
report::document run_document(const training& t, const report::record& head);

/// One line about a run: status (complete, stopped, diverged), steps, losses, first instability;
/// where no expected loss lies below a known floor, that and the mean of the last tenth of losses.
report::record run_summary(const training& t);

/// The checkpoints that a resumed folder continues: its own, or those of the folders in it, sorted;
/// a file is itself. Throws base::error (input) where there are none.
std::vector<std::string> checkpoints_of(const std::string& path);

}  // namespace mx::lab
