// SPDX-License-Identifier: Apache-2.0
// The HDF5 C library, made safe to use: one lock, silent, its errors as ours. For hdf5*.cpp only.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "libmx/io/input_file.hpp"

namespace mx::io {

/// Every call into HDF5 happens inside a scope: the usual builds of the library are not
/// thread-safe. Its printing of errors is suspended inside, and permanently once a file is found to
/// be damaged.
class hdf5_scope {
  public:
    hdf5_scope();
    ~hdf5_scope();
    hdf5_scope(const hdf5_scope&) = delete;
    hdf5_scope& operator=(const hdf5_scope&) = delete;

  private:
    std::unique_lock<std::recursive_mutex> lock_;
    H5E_auto2_t report_ = nullptr;
    void* report_data_ = nullptr;
};

/// Call first in a forked child: its copy of the lock belongs to a thread that it does not have.
/// The fork itself happens inside a scope, so that no other thread is in the library.
void hdf5_after_fork();

/// An HDF5 identifier, closed at the end of its life.
class hdf5_id {
  public:
    using closer = herr_t (*)(hid_t);

    hdf5_id() = default;
    hdf5_id(hid_t id, closer closing) : id_(id), close_(closing) {}
    hdf5_id(hdf5_id&& other) noexcept
        : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
    hdf5_id& operator=(hdf5_id&& other) noexcept {
        std::swap(id_, other.id_);
        std::swap(close_, other.close_);
        return *this;
    }
    ~hdf5_id() { close(); }

    hid_t get() const noexcept { return id_; }
    bool valid() const noexcept { return id_ >= 0; }
    /// Closes it now; false when the library reports a failure.
    bool close() noexcept;

  private:
    hid_t id_ = H5I_INVALID_HID;
    closer close_ = nullptr;
};

/// The innermost message on the library's error stack, in one line; call it inside a scope.
std::string hdf5_problem();

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

/// Opens the image for reading: without a name, which may refer to another file by now; not valid
/// if the library refuses. The image must outlive the file. If the file is truncated meanwhile, a
/// read is SIGBUS: for child processes only.
hdf5_id open_hdf5_image(std::span<std::byte> image);

}  // namespace mx::io
