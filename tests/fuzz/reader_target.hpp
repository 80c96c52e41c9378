// SPDX-License-Identifier: Apache-2.0
// Shared by the fuzzing programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mx::fuzz {

/// The reader of the program by its name in io/readers.hpp; all that the programs differ in.
extern const std::string_view format;

/// Whether the file at `path` is of the program's format.
bool belongs(const std::string& path);

/// Reads `size` bytes as the program's format. Aborts on anything but base::error.
void try_input(const std::uint8_t* data, std::size_t size);

}  // namespace mx::fuzz
