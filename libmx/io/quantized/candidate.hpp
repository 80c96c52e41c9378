// SPDX-License-Identifier: Apache-2.0
// Codes and scales whose names match, and the arrays with them. For .cpp files of this folder only.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libmx/io/quantized/layouts.hpp"
#include "libmx/io/quantized/pairings.hpp"
#include "libmx/io/reader.hpp"

namespace mx::io {

/// "w (U8 90x16)"
std::string described(const tensor_info& t);

/// The arrays of a model by name.
class array_index {
  public:
    array_index(std::span<const tensor_ref> arrays, const std::vector<bool>& skip);

    const tensor_info& info(std::size_t i) const { return arrays_[i].info(); }
    std::size_t size() const { return arrays_.size(); }
    /// The array of that name which belongs to array `to`: in the same file, or the only one. None
    /// otherwise; if there are several, with a reason.
    std::optional<std::size_t> beside(std::size_t to, const std::string& name,
                                      std::string& reason) const;
    /// All bytes of a small array.
    std::string content(std::size_t i) const;

  private:
    std::span<const tensor_ref> arrays_;
    std::unordered_map<std::string_view, std::vector<std::size_t>> names_;
};

struct candidate {
    const array_index& arrays;
    const quantized_naming& naming;
    std::string stem, name;  ///< name: of the tensor
    std::size_t codes, scales;

    const tensor_info& code_info() const { return arrays.info(codes); }
    const tensor_info& scale_info() const { return arrays.info(scales); }
    std::optional<std::size_t> beside(const std::string& other, std::string& reason) const {
        return arrays.beside(codes, other, reason);
    }
    /// Zero points and the groups of columns, if there are any. Compressed-tensors puts their names
    /// after the tensor's, others after the stem.
    std::optional<std::size_t> zeros(std::string& reason) const;
    std::optional<std::size_t> groups(std::string& reason) const;

    /// A pairing under `l`; without an extent in it.
    pairing begin(const quantized_layout& l) const;
};

/// Extents that a tensor can have: neither empty nor too large to count its bytes.
bool fits_memory(const tensor::shape& shape);

// Confirms a layout whose shapes follow special rules. None, with the reason in `misfit`. Contents
// are read if they state extents; numbers of groups are checked when the tensor is opened.
std::optional<pairing> confirm_words(const candidate& c, const quantized_layout& l,
                                     std::string& misfit);
std::optional<pairing> confirm_table(const candidate& c, const quantized_layout& l,
                                     std::string& misfit);
std::optional<pairing> confirm_ggml(const candidate& c, const quantized_layout& l,
                                    std::string& misfit);

}  // namespace mx::io
