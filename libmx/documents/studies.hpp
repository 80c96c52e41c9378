// SPDX-License-Identifier: Apache-2.0
// The results of mx analyze, compare and cluster as documents, for the command and for programs
// that have tensors in memory. Throws base::error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/documents/measured.hpp"
#include "libmx/pages/views/analysis_view.hpp"
#include "libmx/pages/views/compare_view.hpp"

namespace mx::documents {

struct analyze_options : measuring_options {
    pages::analysis_view_options view;
    std::string blocks;  ///< "" or the HDF5 file for per-block arrays
    bool histograms = false;
    bool decompose = false;
    bool regret = false;  ///< else on a page if it is cheap
    /// Replaces figures if it is set: `mx analyze --exact`.
    std::function<void(analysis::analysis&, const std::vector<engine::tensor_ref>&,
                       const analysis::analysis_request&, const engine::run_control&)>
        recompute;
};
measured analyze(const analyze_options& o, const run_environment& environment);
/// The member `summary`.
void declare_summary(report::document_schema& to);

/// The axes of a sweep: recipe keys, the last of which varies fastest.
inline constexpr std::array<std::string_view, 10> sweep_keys{
    "element", "scale_format", "dialect", "transform", "transform_size",
    "offset",  "axis",         "block",   "round",     "scale"};

struct compare_options : measuring_options {
    pages::compare_view_options view;
    std::array<std::vector<std::string>, sweep_keys.size()> axes;  ///< values by key
    std::string baseline;  ///< a recipe; empty: the first cell
    std::uint64_t seeds = 5;
    bool phase_sweep = false;
    std::optional<bool> regret{};  ///< whether it is measured; none: if it is cheap
};
measured compare(const compare_options& o, const run_environment& environment);

struct cluster_options : measuring_options {
    bool all = false;
};
/// Files for it should be opened with input_options::views::vectors: gains are vectors, however
/// many axes of length 1 they have.
measured cluster(const cluster_options& o, const run_environment& environment);
/// The members that it adds to a document.
void declare_diagnosis(report::document_schema& to);

/// The schema mx.analysis/1.
report::document_schema analysis_schema();

}  // namespace mx::documents
