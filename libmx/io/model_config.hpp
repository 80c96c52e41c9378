// SPDX-License-Identifier: Apache-2.0
// The configuration that a model's file states, or that lies beside it.
#pragma once

#include <map>
#include <string>

namespace mx::io {

/// Numbers, texts, true and false by key, as they are spelled. Keys of nested objects are joined
/// with a point, and those of a list's elements are their numbers: "rope_scaling.factor",
/// "layer_types.0". Nulls are left out.
using config_entries = std::map<std::string, std::string>;

/// config.json in the folder of `path`, or in `path` if that is a folder; of a file at an address
/// beside it. Empty if there is none, but for addresses, where that is an error.
/// Throws base::error (input) if it is not JSON, has more than 16 MiB or 65,536 entries.
config_entries read_model_config(const std::string& path);

/// The entries of the JSON file `path`, which exists. The same limits and errors.
config_entries read_entries(const std::string& path);

/// The path of the file that read_model_config reads.
std::string model_config_path(const std::string& path);

/// The member `model_type` of config.json in the folder of `path`; empty if there is none, no such
/// file, or one that cannot be read, and for addresses.
std::string model_type(const std::string& path);

/// The text of config.json in the folder of `path`, a local one, with this `quantization_config`, a
/// JSON object, in place of any other, also of text_config's. Throws base::error (input) if there
/// is no such file.
std::string config_quantized_by(const std::string& path, const std::string& quantization_config);

}  // namespace mx::io
