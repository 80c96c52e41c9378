// SPDX-License-Identifier: Apache-2.0
// What the configuration beside a checkpoint says of it and its arrays cannot.
#pragma once

#include <string>

namespace mx::io {

/// The member `checkpoint_format` of quantize_config.json in the folder of `path`, else that of
/// `quantization_config` in config.json there, as GPTQModel writes them ("gptq", "gptq_v2", ...).
/// Empty where neither says it; a file that cannot be read as JSON says nothing.
std::string checkpoint_format(const std::string& path);

}  // namespace mx::io
