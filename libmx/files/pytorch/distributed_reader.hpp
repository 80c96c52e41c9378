// SPDX-License-Identifier: Apache-2.0
// The .metadata file of torch.distributed.checkpoint: which part of which tensor is where.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libmx/files/pytorch/torch_dtypes.hpp"
#include "libmx/io/shards.hpp"

namespace mx::io {

/// Bytes of a file that are one shard: a tensor as torch.save writes it.
struct stored_shard {
    std::size_t file = 0;  ///< index into files
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

struct distributed_tensor {
    std::string name;
    const torch_dtype* type = nullptr;
    tensor::shape shape;
    std::vector<shard_box> boxes;
    std::vector<stored_shard> shards;  ///< one for each box
};

struct distributed_metadata {
    std::vector<distributed_tensor> tensors;
    std::vector<std::string> files;  ///< their paths
    std::size_t others = 0;          ///< values that are not tensors
};

/// Reads the pickle in `bytes` and checks everything that can be checked without the files it
/// names. Throws base::error (input) naming `file` and the tensor.
distributed_metadata read_distributed_metadata(std::string bytes, const std::string& file);

}  // namespace mx::io
