// SPDX-License-Identifier: Apache-2.0
// Which arrays of a model are the codes and scales of one quantized tensor, from headers alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libmx/block/view.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/io/quantized/layouts.hpp"
#include "libmx/io/reader.hpp"

namespace mx::io {

/// Arrays whose dtypes and shapes confirm that they are one tensor. Members are indices into the
/// searched arrays.
struct pairing {
    std::string name;  ///< of the tensor
    const quantized_layout* layout = nullptr;
    std::size_t codes = 0, scales = 0;
    std::optional<std::size_t> tensor_scale;
    std::optional<std::size_t> zeros;   ///< a zero point for each scale
    std::optional<std::size_t> groups;  ///< the number of the scale, for each column
    std::optional<std::size_t> table;   ///< table that codes are indices into
    /// If scales are indices: the table that they are indices into, and a scale of each outer
    /// block.
    std::optional<std::size_t> outer_table, outer_scales;
    std::vector<std::size_t> said;  ///< arrays that only describe the tensor
    bool divides = false;           ///< by the tensor scale
    bool swizzled = false;
    bool zeros_less_one = false;  ///< of GPTQ: zero points are stored less one
    bool planes = false;          ///< of GPTQ: word_order::planes
    tensor::shape shape;
    int code_bits = 8;
    const format::element_format* element = nullptr;  ///< none for integers and the FNUZ types
    block::grid grid;                                 ///< in the order of the scales
    std::uint64_t outer_block = 0;                    ///< scales that share an outer one
    float outer_offset = 0;                           ///< added to the product of the two
    std::string why;                                  ///< one line: what was found and what fits

    /// All its arrays.
    std::vector<std::size_t> parts() const;
    /// The same pairing among its own arrays: an index is the position in parts().
    pairing alone() const;
};

/// A candidate by its name that dtypes or shapes do not confirm, or that is packed in a way that
/// is not decoded.
struct refused_pairing {
    std::size_t codes;
    std::optional<std::size_t> scales;  ///< none: several arrays have their name
    std::string why;
    std::vector<std::size_t> others = {};  ///< arrays that mean nothing without the codes
};

struct pairings {
    std::vector<pairing> found;
    std::vector<refused_pairing> refused;
};

/// Searches all arrays, across files; an array is part of at most one tensor. Scales in the file of
/// the codes come before those of other files. `swizzled`: block scales of one byte are in the
/// 128x4 order (block/scale_swizzle.hpp). An array with `skip` set is left out.
pairings find_pairings(std::span<const tensor_ref> arrays, bool swizzled,
                       const std::vector<bool>& skip = {});

/// The description of the tensor: dtype F32 if every value is one (except that scales can take it
/// beyond the range, to Inf), F64 otherwise; every value is exact except quotients, which are
/// rounded to F64 once.
tensor_info logical_info(const pairing& p, std::span<const tensor_ref> arrays);

/// The values of a pairing, of the dtype of logical_info. A NaN scale gives NaN.
std::unique_ptr<byte_source> open_pairing(const pairing& p, std::span<const tensor_ref> arrays);

}  // namespace mx::io
