// SPDX-License-Identifier: Apache-2.0
// The HDF5 library in its own process, and its messages. For hdf5*.cpp only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libmx/files/isolated_worker.hpp"
#include "libmx/io/input_file.hpp"
#include "libmx/io/reader.hpp"

namespace mx::io {

/// A process in which the library opens `file`. Damage to the file, and its effects on the library,
/// appear as base::error (input) of the requests below.
std::shared_ptr<const isolated_worker> start_hdf5(const shared_file& file,
                                                  std::optional<tensor::dtype> as,
                                                  const worker_limits& limits = {});

/// Every dataset (see hdf5_datasets), checked as input from a hostile sender.
std::vector<tensor_info> list_hdf5(const isolated_worker& worker, const std::string& path);

/// Dataset `index` of list_hdf5's, described by `info`.
std::unique_ptr<byte_source> open_hdf5_source(std::shared_ptr<const isolated_worker> worker,
                                              std::size_t index, const tensor_info& info);

}  // namespace mx::io
