// SPDX-License-Identifier: Apache-2.0
// Finds the checkpoints of a training run in a folder, and checks whether they are complete.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mx::engine {

/// Names of the files and directories in `folder` that are checkpoints, in natural order: files
/// with the ending of a format that mx reads, indexes instead of their shards
/// (NAME-00001-of-00002), and directories with a shard index, *.safetensors or the .metadata of a
/// distributed checkpoint. Skips hidden names. Throws base::error (input) if the folder cannot be
/// listed.
std::vector<std::string> checkpoints_in(const std::string& folder);

/// The training step in a checkpoint's name: the last number before its ending.
std::optional<std::uint64_t> step_in(const std::string& name);

/// The state of a checkpoint at one check.
struct checkpoint_look {
    std::string missing;  ///< why it is not complete; empty: nothing speaks against it
    bool sealed = false;  ///< its form says that it is complete; others want a second look, with
                          ///< the same traces
    std::string traces;   ///< names, sizes and times of change of its files
};

/// Checks headers, sizes and names. A safetensors file is complete if its header and its size
/// agree; an index, if this holds for all of its shards; NAME-00001-of-00002, if all parts exist; a
/// distributed checkpoint, if its .metadata, which is written last, can be read. Never throws for
/// the contents of files.
checkpoint_look look_at(const std::string& path);

}  // namespace mx::engine
