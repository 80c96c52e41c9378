// SPDX-License-Identifier: Apache-2.0
// The results of all sets of a review, combined.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libmx/analysis/results_table.hpp"
#include "libmx/pages/review.hpp"
#include "libmx/pages/views/diff_steps.hpp"
#include "libmx/report/figure.hpp"
#include "libmx/studies/compare/cells.hpp"

namespace mx::pages {

/// A file that was measured.
struct input_file {
    std::string path;
    std::int64_t bytes = 0;
    std::string sha256;  ///< "" where it was not recorded
    std::string given;   ///< the argument that named it; else its path
};

/// Tensors of one role.
struct tensor_class {
    std::string role;
    std::vector<std::size_t> tensors;  ///< indices into the table
};

struct review_data {
    /// One cell per recipe; recipes that differ only in their seed share a cell.
    compare::sweep_plan plan;
    analysis::results_table table;      ///< every tensor of every set under plan.recipes
    std::vector<tensor_class> classes;  ///< the one with most elements first
    /// What the tensors are of, as policy::judged_model::files.
    std::vector<std::string> files;
    std::size_t tensor_files = 0;  ///< files that hold measured tensors
    std::vector<input_file> inputs;
    std::vector<std::string> measured_by;           ///< "mx 0.1.0"
    std::vector<report::explorer::metric> metrics;  ///< by cell and tensor
    std::vector<const report::record*> sums;        ///< of the members `distributions`
    std::vector<const report::record*> norms;
    std::int64_t norms_left_out = 0;
    std::vector<dump_series> dumps;
    std::size_t repeated = 0;   ///< results that were there before; the first counts
    std::int64_t measured = 0;  ///< results in all

    bool decomposed() const;
    /// Whether results contain the distance of their scales from the best ones.
    bool has_regret() const;
    const std::string& cell_name(std::size_t cell) const { return plan.cells[cell].name; }
    /// The tensor's name, with what it is of if several inputs were measured.
    std::string tensor_name(std::size_t tensor) const;
    const std::string& file_of(std::size_t tensor) const;  ///< the one of `files`

    std::map<std::string, std::string> given;  ///< the argument that named a file, by path
    bool by_file = false;                      ///< `files` are files
};

/// The name of a file without its folders, unless another of `files` has the same name.
std::string file_name(const std::string& path, const std::vector<std::string>& files);

/// Without `with_metrics`, review_data::metrics stays empty. Throws base::error (input).
review_data gather(std::span<const result_set> sets, bool with_metrics = true);

}  // namespace mx::pages
