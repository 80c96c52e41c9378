// SPDX-License-Identifier: Apache-2.0
// Compares each dump of a model with the next: training steps, or an original and its quantized
// version.
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

/// Bounds memory: a panel of every dump is held at a time, three of them quantized.
inline constexpr std::size_t most_dumps = 64;

/// norm_bias is added before any figure is computed; the only factor is 1.
struct diff_request : engine::run_request {
    std::vector<std::string> paths;  ///< what the dumps are called in records, one each
    dump_labels labels;
    std::vector<std::string> groups;  ///< which tensors share a record: analysis::group_tensors
};

/// The block maxima of a norm through all dumps, under a recipe with a clamp zone.
struct norm_course {
    std::string tensor, recipe;
    std::vector<mean_maxima> dumps;
};

struct diff_result {
    /// One record per tensor (or group), recipe and pair of consecutive dumps.
    report::record_list results;
    /// One record per recipe and pair, over all tensors.
    std::vector<report::record> summary;
    /// With at least three dumps, one record per tensor (or group) and recipe: lists by dump.
    std::vector<report::record> series;
    std::vector<drift_finding> findings;  ///< of single tensors; most blocks in the zone first
    std::vector<norm_course> norms;
    std::vector<engine::skipped_tensor> left_out;
    std::uint64_t tensors = 0;   ///< compared
    std::uint64_t elements = 0;  ///< of these
    bool identical = false;      ///< no value of a compared tensor differs, and there is one
};

/// The members of the records in results, series and summary.
void declare_diff(report::member_list& result, report::member_list& series,
                  report::member_list& total);

/// Compares two to most_dumps dumps. match_dumps matches the tensors. The result does not depend on
/// threads. Throws base::error.
diff_result diff(std::span<const io::reader* const> dumps,
                 const std::vector<engine::tensor_ref>& chosen, const diff_request& request,
                 const engine::run_control& control);

}  // namespace mx::diff
