// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a training in a folder: which there are, and whether they are written to their
// end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mx::engine {

/// Names of the files and directories in `folder` that are checkpoints, in natural order: files
/// with the ending of a format that mx reads, indexes in place of their shards
/// (NAME-00001-of-00002), and directories with a shard index, *.safetensors or the .metadata of a
/// distributed checkpoint. Hidden names are left out. Throws base::error (input) when the folder
/// cannot be listed.
std::vector<std::string> checkpoints_in(const std::string& folder);

/// The training step that a checkpoint's name tells: the last number before its ending.
std::optional<std::uint64_t> step_in(const std::string& name);

/// What one look at a checkpoint tells.
struct checkpoint_look {
    std::string missing;  ///< why it is not complete; empty: nothing speaks against it
    bool sealed = false;  ///< its form says that it is complete; others want a second look, with
                          ///< the same traces
    std::string traces;   ///< names, sizes and times of change of its files
};

/// Looks at headers, sizes and names. A safetensors file is complete when its header and its size
/// agree, an index when that holds for all of its shards, NAME-00001-of-00002 when all parts are
/// there, a distributed checkpoint when its .metadata can be read, which is written last. Never
/// throws for what it finds.
checkpoint_look look_at(const std::string& path);

}  // namespace mx::engine
