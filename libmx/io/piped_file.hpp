// SPDX-License-Identifier: Apache-2.0
// Standard input and named pipes as files: their bytes are copied to a file without a name, so that
// every reader can read them by position.
#pragma once

#include <string>

#include "libmx/io/input_file.hpp"

namespace mx::io {

/// Whether `path`, as given by the user, is standard input ("-") or a pipe.
bool is_pipe(const std::string& path);

/// The bytes of one of these, to its end: waits for a writer and for its data. A path that is still
/// open elsewhere is the same file, and standard input is read once; if that is a regular file that
/// was not read from, it is used directly. Throws base::error: usage if standard input is a
/// terminal, output if $TMPDIR (/tmp) is full, cancelled if a signal arrives meanwhile.
shared_file open_pipe(const std::string& path);

/// A name given by the user: a file, or a pipe.
shared_file open_named(const std::string& path);

}  // namespace mx::io
