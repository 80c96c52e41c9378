// SPDX-License-Identifier: Apache-2.0
// Makes a recording: writes the parts into a folder and then the manifest.
#pragma once

#include <string>

#include "apps/mx_capture/parts.hpp"

namespace mx::capture {

struct request {
    std::string out;      ///< folder; "": capture-DEVICE-DATE
    std::string emulate;  ///< a chip's name: the emulator instead of a GPU
    std::string only;     ///< parts whose file name contains this; "": all
    std::string replay;   ///< folder of vector files of matrix instructions; "": none
    amounts how_much;
    bool dry = false;  ///< writes nothing
};

/// Records, or prints to standard output what would be recorded. Parts that fail are named in the
/// manifest. Throws base::error: usage for an unknown chip, unavailable when there is no card that
/// can be recorded, output. Returns how many parts failed.
std::size_t capture(const request& what);

}  // namespace mx::capture
