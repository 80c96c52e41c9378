// SPDX-License-Identifier: Apache-2.0
// What HDF5 writes, into a stage of ours. For hdf5*.cpp only.
#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include "libmx/files/hdf5_handle.hpp"
#include "libmx/io/staged_output.hpp"

namespace mx::io {

/// A file driver of HDF5. The library does not survive a failed write: it keeps what it could not
/// write, tries again when the program ends, and crashes. So no write fails here: after the first
/// that the stage refuses, what is written goes to memory (a few MiB at most, the library's cache)
/// until the file is closed, and check() says what happened. To be used inside a hdf5_scope, and to
/// outlive the file.
class hdf5_stage {
  public:
    explicit hdf5_stage(staged_output& stage);

    /// The file access list to create the file with; its name is not used.
    hid_t access() const noexcept { return access_.get(); }
    /// Throws what the stage threw, if it did.
    void check() const {
        if (failure_) std::rethrow_exception(failure_);
    }

    // For the driver's functions.
    void read(haddr_t at, std::span<std::byte> bytes) const;
    void write(haddr_t at, std::span<const std::byte> bytes) noexcept;
    void resize(haddr_t size) noexcept;

  private:
    staged_output* stage_;
    std::exception_ptr failure_;
    std::vector<std::pair<haddr_t, std::vector<std::byte>>> unwritten_;  ///< later ones win
    hdf5_id driver_;
    hdf5_id access_;
};

}  // namespace mx::io
