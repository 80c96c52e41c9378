// SPDX-License-Identifier: Apache-2.0
// Values of an ONNX tensor that are not raw bytes. For onnx*.cpp only.
#pragma once

#include <memory>

#include "libmx/files/onnx/onnx_model.hpp"
#include "libmx/io/sources.hpp"

namespace mx::io {

/// The bytes of `t` gathered from its typed fields into a spool; `bytes` were counted by the
/// reader and found to fit. Throws base::error (input) when there are more or fewer values, or one
/// that its type does not have.
std::unique_ptr<byte_source> onnx_typed_values(const shared_file& file, const onnx_tensor& t,
                                               const onnx_type& type, std::uint64_t bytes);

}  // namespace mx::io
