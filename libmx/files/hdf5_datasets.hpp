// SPDX-License-Identifier: Apache-2.0
// Contents of an HDF5 file: datasets by path, and the root's text attributes. For hdf5*.cpp only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libmx/files/hdf5_handle.hpp"
#include "libmx/io/reader.hpp"

namespace mx::io {

/// Largest compressed chunk that is read: HDF5 unpacks chunks in memory.
inline constexpr std::uint64_t hdf5_chunk_limit = 64 << 20;

/// Every dataset reachable by hard links, in the order of the names, groups entered once however
/// often they are linked. Links elsewhere are listed with a note and not followed. Reads no data.
std::vector<tensor_info> hdf5_datasets(hid_t file, const std::string& path,
                                       std::optional<tensor::dtype> as);

/// Opens the dataset that `info` describes (see hdf5_datasets).
std::unique_ptr<byte_source> open_hdf5_dataset(std::shared_ptr<const hdf5_id> file,
                                               const tensor_info& info);

/// Text attributes of the root group of up to 64 KiB; model_config, of Keras, up to 16 MiB.
std::map<std::string, std::string> hdf5_attributes(hid_t file);

}  // namespace mx::io
