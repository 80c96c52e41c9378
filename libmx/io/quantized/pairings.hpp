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
/// arrays that were searched.
struct pairing {
    std::string name;  ///< of the tensor
    const quantized_layout* layout = nullptr;
    std::size_t codes = 0, scales = 0;
    std::optional<std::size_t> tensor_scale;
    std::optional<std::size_t> extents;  ///< the array that says how many codes there are
    bool divides = false;                ///< by the tensor scale
    bool swizzled = false;
    tensor::shape shape;
    int code_bits = 8;
    const format::element_format* element = nullptr;  ///< none for INT8 and the FNUZ types
    block::grid grid;                                 ///< in the order of the scales
    std::string why;                                  ///< one line: what was found and what fits
};

/// A candidate by its name that dtypes or shapes do not confirm.
struct refused_pairing {
    std::size_t codes;
    std::optional<std::size_t> scales;  ///< none: several arrays have their name
    std::string why;
};

struct pairings {
    std::vector<pairing> found;
    std::vector<refused_pairing> refused;
};

/// Looks through all arrays, across files; an array is the part of one tensor at most. Scales in
/// the file of the codes come before those of other files. `swizzled`: block scales of one byte are
/// in the 128x4 order (block/scale_swizzle.hpp). An array with `skip` set is left out.
pairings find_pairings(std::span<const tensor_ref> arrays, bool swizzled,
                       const std::vector<bool>& skip = {});

/// What is known about the tensor: dtype F32 where every value is one (but for scales that take it
/// beyond the range, which become Inf), F64 otherwise, where every value is exact except quotients,
/// which are rounded to F64 once.
tensor_info logical_info(const pairing& p, std::span<const tensor_ref> arrays);

/// The values of a pairing, of the dtype that logical_info says. A NaN scale makes NaN.
std::unique_ptr<byte_source> open_pairing(const pairing& p, std::span<const tensor_ref> arrays);

}  // namespace mx::io
