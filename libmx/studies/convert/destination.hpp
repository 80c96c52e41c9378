// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libmx/io/writer.hpp"

namespace mx::convert {

/// The writer for `path` by its extension: .npy takes exactly one array, .h5 and .hdf5 are HDF5,
/// anything else is safetensors. Throws base::error (usage) when .npy is asked for several arrays,
/// two arrays have one name, or the extension is that of a format which is not written.
std::unique_ptr<io::array_writer> create_destination(const std::string& path,
                                                     const std::vector<io::planned_array>& plan,
                                                     const io::metadata_map& metadata);

}  // namespace mx::convert
