// SPDX-License-Identifier: Apache-2.0
// Standard input and named pipes as files: their bytes are copied to a file without a name, so that
// every reader can ask for them by position.
#pragma once

#include <string>

#include "libmx/io/input_file.hpp"

namespace mx::io {

/// Whether `path`, as a user names it, is standard input ("-") or a pipe.
bool is_pipe(const std::string& path);

/// The bytes of one of those, to its end: waits for a writer and for what it writes. A path that is
/// still open somewhere is the same file, and standard input is read once; where that is a regular
/// file that was not read from, it is used as it is. Throws base::error: usage when standard input
/// is a terminal, output when $TMPDIR (/tmp) has no room, cancelled when a signal comes meanwhile.
shared_file open_pipe(const std::string& path);

/// What a user names: a file, or a pipe.
shared_file open_named(const std::string& path);

}  // namespace mx::io
