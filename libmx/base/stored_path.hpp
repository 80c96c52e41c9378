// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace mx::base {

/// Whether `path`, which a file names, is relative and stays below the folder that it is relative
/// to: a downloaded file must not refer to files elsewhere. False for addresses, absolute paths and
/// "..", written as they are or as a server decodes them (%2e).
bool stays_inside(std::string_view path);

}  // namespace mx::base
