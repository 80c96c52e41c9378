// SPDX-License-Identifier: Apache-2.0
// The kind of model that a checkpoint holds, as the configuration beside it states.
#pragma once

#include <string>

namespace mx::io {

/// The member `model_type` of config.json in the folder of `path`; empty if there is none, or no
/// such file that is readable as JSON.
std::string model_type(const std::string& path);

}  // namespace mx::io
