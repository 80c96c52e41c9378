// SPDX-License-Identifier: Apache-2.0
// A training run and its folder: run.json, checkpoints, dumps.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/lab/curves.hpp"
#include "libmx/lab/training.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"

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

/// Makes the folder of a new run. Throws base::error: usage if it already contains a run, output if
/// it cannot be made.
void begin_folder(const std::string& folder);

/// Runs until the last step, the first loss that is NaN or infinite, or until `cancel` is set.
/// Writes the latest state and run.json to the folder together, each by renaming a temporary file:
/// run.json can be read while the run goes on. Throws base::error: output if something cannot be
/// written, when earlier files remain; usage if another program runs in the folder.
void run(training& t, const run_plan& plan);

/// The contents of run.json after `head`: the request; an entry per step with `step`, `loss` (null
/// if NaN or infinite), `gradient_norm`, and `probe` if one was taken; and `results`, a summary.
report::document run_document(const training& t, const report::record& head);

/// The rule by which runs of this request are unstable.
instability_rule rule_of(const run_request& r);

/// A run in short.
struct run_figures {
    const training& of;
    std::vector<float> losses, judged;  // judged: judged_losses()
    instability_rule rule;
    std::optional<double> floor;  ///< of texts with a known entropy bound
};
run_figures figures_of(const training& t);
extern const std::array<report::declared<run_figures>, 13> run_members;

/// The schema of run.json, mx.run/1.
report::document_schema run_schema();

/// The checkpoints from which a folder resumes: its own, or those of its subfolders, sorted; for a
/// file, the file itself. Throws base::error (input) if there are none.
std::vector<std::string> checkpoints_of(const std::string& path);

}  // namespace mx::lab
