// SPDX-License-Identifier: Apache-2.0
// HDF5 datatypes and ours. For hdf5*.cpp only.
#pragma once

#include <optional>
#include <string>

#include "libmx/files/hdf5_handle.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::io {

/// Our dtype for a stored datatype; for dtype::other `note` gives the reason.
struct hdf5_meaning {
    tensor::dtype type = tensor::dtype::other;
    std::string note;
};

/// The attribute of a dataset that names the dtype of its bytes, if HDF5 has no such type.
inline constexpr const char* hdf5_dtype_attribute = "mx.dtype";

/// The dtype of `stored`: integers and IEEE-like floats of any byte order, h5py's truth values
/// and complex numbers, and opaque elements that `as` explains.
hdf5_meaning meaning_of(hid_t stored, std::optional<tensor::dtype> as);

/// `stored` with its numbers little-endian: what datasets are read as.
hdf5_id little_endian(hid_t stored);

/// The datatype for writing arrays of `type`; bytes for FP8 formats whose special codes are not
/// IEEE's, and not valid for packed types, which HDF5 does not support.
hdf5_id stored_type(tensor::dtype type);

}  // namespace mx::io
