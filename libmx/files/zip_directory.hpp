// SPDX-License-Identifier: Apache-2.0
// The directory of a zip archive, looked at before libzip reads it.
#pragma once

#include <cstdint>

#include "libmx/io/input_file.hpp"

namespace mx::io {

/// Throws base::error (input) if libzip would take time quadratic in the entries of the archive in
/// bytes [begin, begin + size) of `file`: it keeps names in a table whose hash is known, and reads
/// the directory once for every end of one that it finds.
void check_zip_directory(const input_file& file, std::uint64_t begin, std::uint64_t size);

}  // namespace mx::io
