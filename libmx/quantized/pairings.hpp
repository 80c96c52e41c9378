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
#include "libmx/io/reader.hpp"
#include "libmx/io/remarks.hpp"
#include "libmx/io/sources.hpp"
#include "libmx/quantized/layouts.hpp"

namespace mx::io {

/// Arrays whose dtypes and shapes confirm that they are one tensor. Members are indices into the
/// searched arrays.
struct pairing {
    std::string name;  ///< of the tensor
    const quantized_layout* layout = nullptr;
    const quantized_naming* naming = nullptr;
    std::size_t codes = 0, scales = 0;
    std::optional<std::size_t> tensor_scale;    ///< one number, or one for each matrix
    std::optional<std::size_t> input_channels;  ///< a factor for each index of the input axis
    std::optional<std::size_t> input_scale;     ///< of the activations: scales none of the values
    std::optional<std::size_t> zeros;           ///< a zero point for each scale
    std::optional<std::size_t> groups;          ///< the number of the scale, for each column
    std::optional<std::size_t> table;           ///< table that codes are indices into
    /// If scales are indices: the table that they are indices into, and a scale of each outer
    /// block.
    std::optional<std::size_t> outer_table, outer_scales;
    std::vector<std::size_t> said;  ///< arrays that only describe the tensor
    bool divides = false;           ///< by the tensor scale
    bool swizzled = false;          ///< scales are in the 128x4 order
    bool fits_swizzled = false;     ///< and are read row by row, though they fit that order, too
    bool down = false;            ///< blocks, and codes in a byte, follow each other down a column
    bool zeros_less_one = false;  ///< of GPTQ: zero points are stored less one
    bool planes = false;          ///< of GPTQ: word_order::planes
    tensor::shape shape;
    int code_bits = 8;
    const format::element_format* element = nullptr;  ///< none for integers and the FNUZ types
    block::grid grid;                                 ///< in the order of the scales
    std::uint64_t outer_block = 0;                    ///< scales that share an outer one
    float outer_offset = 0;                           ///< added to the product of the two
    contraction sums_over;                            ///< as blocks or rows of scales show it
    std::string why;                                  ///< one line: what was found and what fits

    /// The axis of input channels: the one summed over, else the last.
    std::size_t input_axis() const;
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
    std::string what = "codes that are not decoded";
};

/// What a tensor lacks that its siblings have: a file that a loader reads wrongly or refuses.
struct missing_partner {
    std::size_t codes;
    std::string array;      ///< name of what is missing
    std::string why;        ///< "which 3 tensors like it have"
    bool harmless = false;  ///< values do not depend on it
};

struct pairings {
    std::vector<pairing> found;
    std::vector<refused_pairing> refused;
    std::vector<missing_partner> missing;  ///< at most one of each codes that is not harmless
};

/// Searches all arrays, across files; an array is part of at most one tensor. Scales in the file of
/// the codes come before those of other files. `swizzled`: block scales of one byte are in the
/// 128x4 order (block/scale_swizzle.hpp). An array with `skip` set is left out.
pairings find_pairings(std::span<const tensor_ref> arrays, bool swizzled,
                       const std::vector<bool>& skip = {});

/// The description of the tensor: dtype F32 if every value is one (except that scales can take it
/// beyond the range, to Inf), F64 otherwise; every value is exact except quotients and products
/// with the factor of an input channel, which are rounded to F64 once.
tensor_info logical_info(const pairing& p, std::span<const tensor_ref> arrays);

/// The scales that the tensor, or each of its matrices, has one of.
std::vector<tensor_scale> tensor_scales(const pairing& p, std::span<const tensor_ref> arrays);

/// The stored block scales in the order of the pairing's grid.
shared_source open_block_scales(const pairing& p, std::span<const tensor_ref> arrays);

/// The values of a pairing, of the dtype of logical_info. A NaN scale gives NaN.
std::unique_ptr<byte_source> open_pairing(const pairing& p, std::span<const tensor_ref> arrays);

}  // namespace mx::io
