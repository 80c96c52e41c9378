// SPDX-License-Identifier: Apache-2.0
// The elements of one HDF5 dataset. For hdf5*.cpp only.
#pragma once

#include <memory>

#include "libmx/files/hdf5_handle.hpp"
#include "libmx/io/reader.hpp"

namespace mx::io {

/// Opens the dataset that `info` describes (see hdf5_datasets).
std::unique_ptr<byte_source> open_hdf5_dataset(std::shared_ptr<const hdf5_id> file,
                                               const tensor_info& info);

}  // namespace mx::io
