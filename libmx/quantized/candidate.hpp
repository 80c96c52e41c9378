// SPDX-License-Identifier: Apache-2.0
// Codes and scales whose names match, and the arrays with them. For .cpp files of this folder only.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/base/text_tables.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/quantized/layouts.hpp"
#include "libmx/quantized/pairings.hpp"

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
    /// An entry of the metadata of the array's file; empty: there is none.
    std::string metadata_of(std::size_t i, const std::string& key) const;

  private:
    std::span<const tensor_ref> arrays_;
    base::view_map<std::vector<std::size_t>> names_;
};

/// What further arrays of a tensor are named after: it, the stem, and the module whose weight it
/// is.
std::vector<std::string> owners_of(const std::string& name, const std::string& stem);

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
    /// The array with one of these endings after one of owners_of().
    std::optional<std::size_t> beside_any(std::span<const std::string_view> endings,
                                          std::string& reason) const;

    /// A pairing under `l`; without an extent in it.
    pairing begin(const quantized_layout& l) const;
};

/// The matrices of a shape.
block::view matrices(const tensor::shape& shape);

/// Whether scales of shape `have` are those `expected`: axes of one may be missing at the end of
/// it, and any others may be axes of one.
bool shapes_agree(const tensor::shape& expected, const tensor::shape& have);

/// Integers that are no numbers where an array of scales is next to them.
bool is_integer(tensor::dtype t);

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
std::optional<pairing> confirm_keras(const candidate& c, const quantized_layout& l,
                                     std::string& misfit);

// What arrays that are part of no pairing (`taken`) are all the same, by their names: codes next to
// anything that is called a scale, and scales whose codes are in no file.
std::vector<refused_pairing> codes_and_scales_by_name(const array_index& arrays,
                                                      const std::vector<bool>& taken);

// Scales and tensor scales that siblings of a tensor have: those of the same dtype whose names end
// alike or have the same parent.
std::vector<missing_partner> find_missing(const array_index& arrays,
                                          const std::vector<pairing>& found,
                                          const std::vector<bool>& taken);

}  // namespace mx::io
