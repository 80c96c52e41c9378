// SPDX-License-Identifier: Apache-2.0
// Facts of a quantized checkpoint that only its configuration states.
#pragma once

#include <string>

namespace mx::io {

/// The member `checkpoint_format` of quantize_config.json in the folder of `path`, else that of
/// `quantization_config` in config.json there, as GPTQModel writes them ("gptq", "gptq_v2", ...).
/// Empty if neither has it; a file that is not readable as JSON counts as missing.
std::string checkpoint_format(const std::string& path);

}  // namespace mx::io
