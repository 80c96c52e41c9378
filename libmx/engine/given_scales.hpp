// SPDX-License-Identifier: Apache-2.0
// Outer scales read from a file (outer=given:FILE), by tensor.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libmx/io/reader.hpp"

namespace mx::engine {

/// The scales in one file of any format that io reads. The scale of a tensor is the number in the
/// first array of one number that has its name and one of the endings `_global_scale`,
/// `.global_scale` or `_scale_2`, or its name alone, or its name and the ending `_scale` or
/// `.scale`: a quantized checkpoint has codes and block scales under the last three. If the file
/// has a single array with one number, that applies to all tensors, unless its name is that of
/// another tensor.
class given_scales {
  public:
    /// Throws base::error (input) if the file cannot be read.
    explicit given_scales(const std::string& path);

    /// The scale of a tensor; nullopt if the file has none. Throws base::error (input) with file
    /// and array if all arrays of these names have several numbers, and for a scale that is not
    /// positive and finite.
    std::optional<float> of(const io::tensor_ref& tensor) const;

    /// Why a tensor without a scale is left out: "'FILE' has no outer scale for it", and what the
    /// file has.
    std::string why_left_out() const;

  private:
    bool is_of_another(const io::tensor_ref& tensor) const;
    float read(std::size_t array) const;

    std::string path_;
    std::unique_ptr<io::reader> file_;
    std::vector<std::string> owners_;  ///< what the only number may be the scale of, by its name
    // Those of them that are tensors of the reader that was asked for last.
    mutable const io::reader* asked_ = nullptr;
    mutable std::vector<std::string> known_;
};

}  // namespace mx::engine
