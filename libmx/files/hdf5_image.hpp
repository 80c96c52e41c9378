// SPDX-License-Identifier: Apache-2.0
// An HDF5 file opened from its mapped bytes: without its name, which may mean another file by now,
// and also when it has none. For hdf5*.cpp only.
#pragma once

#include <cstddef>
#include <span>

#include "libmx/files/hdf5_handle.hpp"
#include "libmx/io/input_file.hpp"

namespace mx::io {

/// The bytes of a file in memory, as the system pages them in.
class file_image {
  public:
    /// Throws base::error (input) when the system cannot map the file.
    explicit file_image(const input_file& file);
    ~file_image();
    file_image(const file_image&) = delete;
    file_image& operator=(const file_image&) = delete;

    std::span<std::byte> bytes() const noexcept { return bytes_; }

  private:
    std::span<std::byte> bytes_;
};

/// Opens the image for reading; not valid when the library refuses. The image outlives the file.
/// Where the file was cut short meanwhile, a read is SIGBUS: for child processes only.
hdf5_id open_hdf5_image(std::span<std::byte> image);

}  // namespace mx::io
