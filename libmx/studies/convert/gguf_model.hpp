// SPDX-License-Identifier: Apache-2.0
// A model as GGUF stores it, from a GGUF file or from a folder of transformers.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "libmx/io/gguf/gguf_writer.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/studies/convert/convert.hpp"

namespace mx::convert {

struct gguf_model {
    /// Under their names in GGUF, with their recipes.
    std::vector<assigned_tensor> tensors;
    /// All tensors as they are written if they are not quantized: with the bytes and in the order
    /// of `as_stored`.
    std::vector<io::planned_gguf_tensor> plan;
    std::unique_ptr<io::reader> as_stored;
    std::function<io::gguf_metadata(std::uint32_t file_type)> metadata;
    std::vector<engine::skipped_tensor> left_out;  ///< of the input, and why
};

/// `tensors` are of one file. Throws base::error: usage if it is no GGUF file and its folder no
/// model of an architecture that is written as GGUF (llm::architectures), or was changed by a view;
/// input for what GGUF cannot express of the configuration, the tensors and the tokenizer.
gguf_model gguf_model_of(const std::vector<assigned_tensor>& tensors);

}  // namespace mx::convert
