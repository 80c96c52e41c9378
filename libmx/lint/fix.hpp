// SPDX-License-Identifier: Apache-2.0
// A copy of a checkpoint without the faults that can be repaired without changing a value.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "libmx/lint/lint.hpp"

namespace mx::lint {

/// What became of a finding.
struct repair {
    finding of;
    bool done = false;
    std::string how;  ///< what was changed, or why nothing was
};

/// Copies the checkpoint at `path`, a folder of safetensors files, its index or one of its shards,
/// to the new folder `out`, with its configuration and tokenizer. Of what lint() finds under `how`,
/// these are repaired:
/// - `index`: the index is written from the headers of the files;
/// - `fused-scales`: partners get the tensor scale of one of them, and their block scales (FP8
///   without blocks: their codes) are multiplied by the ratio, if that gives every value exactly.
/// Files appear under their names at the end, the index last. Returns a repair for each finding, in
/// the order of lint(). Throws base::error: usage if `path` is no such folder, input if a file
/// cannot be read, a tensor is in two files, or an index names tensors that are in none; output if
/// `out` is neither new nor empty; cancelled once `cancel` is set.
std::vector<repair> fix(const std::string& path, const lint_options& how, const std::string& out,
                        const std::atomic<bool>* cancel);

}  // namespace mx::lint
