// SPDX-License-Identifier: Apache-2.0
// Dumps of one model, each against the next: training steps, or an original and what quantization
// made of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libmx/engine/run.hpp"
#include "libmx/report/record_list.hpp"
#include "libmx/studies/diff/drift.hpp"
#include "libmx/studies/diff/labels.hpp"

namespace mx::diff {

/// A panel of every dump is in memory at a time, and three are quantized.
inline constexpr std::size_t most_dumps = 64;

/// norm_bias goes before every figure; the only factor is 1.
struct diff_request : engine::run_request {
    std::vector<std::string> paths;  ///< what the dumps are called in records, one each
    dump_labels labels;
    std::vector<std::string> groups;  ///< which tensors share a record: analysis::group_tensors
};

/// The block maxima of a norm under a recipe with a clamp zone, through all dumps.
struct norm_course {
    std::string tensor, recipe;
    std::vector<mean_maxima> dumps;
};

struct diff_result {
    /// One record per tensor (or group), recipe and pair of dumps that follow each other.
    report::record_list results;
    /// One per recipe and pair: all tensors together.
    std::vector<report::record> summary;
    /// With three dumps or more, one per tensor (or group) and recipe: lists by dump.
    std::vector<report::record> series;
    std::vector<drift_finding> findings;  ///< of single tensors; most blocks in the zone first
    std::vector<norm_course> norms;
    std::vector<engine::skipped_tensor> left_out;
    std::uint64_t tensors = 0;   ///< compared
    std::uint64_t elements = 0;  ///< of these
    bool identical = false;      ///< no value of a compared tensor differs, and there is one
};

/// Compares two to most_dumps dumps. Tensors are matched as match_dumps says. The result does not
/// depend on threads. Throws base::error.
diff_result diff(std::span<const io::reader* const> dumps,
                 const std::vector<engine::tensor_ref>& chosen, const diff_request& request,
                 const engine::run_control& control);

}  // namespace mx::diff
