// SPDX-License-Identifier: Apache-2.0
// Finds the scale rules that can have produced the bytes of a file with scales and elements.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libmx/block/view.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/io/sources.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/studies/rosetta/top_frequencies.hpp"

namespace mx::rosetta {

/// A tensor stored as element codes and scale bytes (E8M0, UE4M3 or UE5M3).
struct coded_tensor {
    std::string name;
    engine::tensor_ref codes{}, scales{};
    const format::element_format* element = nullptr;
    const format::scale_format* scale_format = format::find_scale_format("e8m0");
    std::optional<codec::tensor_scale> outer{};  ///< the tensor scale beside them
    block::grid grid;                            ///< the blocks, in the order of the scale bytes
    std::string block;                           ///< "1x32"
    codec::recipe recipe;                        ///< that the file names (has_recipe)
    bool has_recipe = false;
    /// The scale bytes in the order of the blocks; none: as stored.
    std::function<io::shared_source()> open_scales = {};
    bool fits_swizzled = false;  ///< the scales are read row by row and fit the 128x4 order, too
};

/// How to find coded tensors if the file does not describe them.
struct coded_request {
    std::string element;   ///< "" or the element format of the codes, of as many bits as stored
    std::string elements;  ///< name of the array of codes, with `scales`
    std::string scales;
    std::string scale_format{};  ///< of the named scales; for bytes E8M0 by default
    std::string tensor_scale{};  ///< "" or the name of the array that holds it
    bool swizzled = false;       ///< scales are in the 128x4 order (block/scale_swizzle.hpp)
};

/// The coded tensors of a model: those of mx's packed files; pairs of arrays that io::find_pairings
/// confirms and whose scales are bytes; or the pair that `how` names, with blocks along the last
/// axis. Empty if the model has none. Throws base::error: input if sizes do not match, usage for
/// names that do not exist. Quantized tensors whose bytes no recipe explains go to `left_out`, with
/// the reason.
std::vector<coded_tensor> find_coded_tensors(const engine::model& of, const coded_request& how,
                                             std::vector<engine::skipped_tensor>& left_out);
std::vector<coded_tensor> find_coded_tensors(const io::reader& file, const coded_request& how);

/// How well a recipe explains the blocks.
struct origin_row {
    codec::recipe recipe;
    std::uint64_t excluded = 0;        ///< blocks that it cannot have produced
    std::uint64_t excluded_zero = 0;   ///< of these, blocks of zeros only
    std::uint64_t first_excluded = 0;  ///< index of the first of them
    std::uint64_t scales_differ = 0;   ///< with the original: blocks whose scale bytes differ
    std::uint64_t codes_differ = 0;    ///< with the original: elements whose codes differ
    /// The same with the codes of each byte exchanged; see origin_result::nibbles.
    std::uint64_t codes_differ_swapped = 0;
    /// With the original: the file's tensor scale differs from the recipe's. Bytes are then
    /// compared under the file's tensor scale.
    bool tensor_scale_differs = false;
    std::vector<top_frequency> tops;  ///< how often its largest codes occur
};

struct origin_result {
    coded_tensor tensor;
    std::uint64_t blocks = 0, elements = 0;
    std::uint64_t zero_blocks = 0;  ///< all codes are zero
    std::uint64_t nan_scales = 0;   ///< the scale is NaN
    std::uint64_t unjudged = 0;     ///< blocks with NaN codes under a finite scale
    int largest_scale = -1;         ///< largest scale code other than NaN, -1 if there is none
    bool compared = false;          ///< an original was given
    bool nibbles = false;           ///< and bytes hold two codes of one block each
    std::vector<origin_row> rows;
};

/// Tests every recipe that applies to the formats of elements and scales on every block; with
/// `original` (tensors of the same name and number of elements) also compares the bytes. One pass
/// over each file. Throws base::error.
std::vector<origin_result> find_origins(const std::vector<coded_tensor>& tensors,
                                        const engine::model* original,
                                        const engine::run_control& control);

/// One record per tensor and recipe.
report::record origin_record(const origin_result& result, const origin_row& row);
/// The schema mx.origins/1.
report::document_schema origins_schema();

}  // namespace mx::rosetta
