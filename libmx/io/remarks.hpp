// SPDX-License-Identifier: Apache-2.0
// What some readers state beyond the interface of all: remarks on the file as a whole, and the
// scales that a decoded tensor has one of.
#pragma once

#include <string>
#include <vector>

#include "libmx/io/reader.hpp"

namespace mx::io {

/// An array with a number for a whole tensor, or for each of its matrices.
struct tensor_scale {
    std::string name;           ///< of the array
    std::string use;            ///< "multiplied", "divided", or "activations": not of these values
    std::vector<float> values;  ///< as stored; none of files at addresses, and of very many
};

/// The metadata of a .keras file with the modes of quantization that its configuration states.
inline constexpr const char* keras_modes_key = "keras quantization";

/// A reader that has something to state derives from it, too.
class remarking {
  public:
    virtual ~remarking() = default;
    /// Sentences on the file, such as tensors that its index omits.
    virtual std::vector<std::string> remarks() const { return {}; }
    /// Read when called: opening a file reads headers only.
    virtual std::vector<tensor_scale> tensor_scales(std::size_t) const { return {}; }
};

inline std::vector<std::string> remarks_of(const reader& file) {
    const auto* const states = dynamic_cast<const remarking*>(&file);
    return states != nullptr ? states->remarks() : std::vector<std::string>();
}

inline std::vector<tensor_scale> tensor_scales_of(const tensor_ref& t) {
    const auto* const states = dynamic_cast<const remarking*>(t.file);
    return states != nullptr ? states->tensor_scales(t.index) : std::vector<tensor_scale>();
}

}  // namespace mx::io
