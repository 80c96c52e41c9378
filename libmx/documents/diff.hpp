// SPDX-License-Identifier: Apache-2.0
// The results of mx diff as documents (schemas mx.diff/1 and mx.changes/1).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libmx/analysis/results_input.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/documents/inputs.hpp"
#include "libmx/documents/parts.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"

namespace mx::documents {

struct diff_options {
    input_options in;  ///< files: the dumps
    role_options roles;
    std::vector<std::string> recipes;  ///< none: mxfp8 and mxfp4 with the scale rule floor
    std::vector<std::string> labels;   ///< of the dumps in their order
    bool as_given = false;             ///< not in the order of the numbers in their names
    std::vector<std::string> groups;   ///< which tensors share a record: analysis::group_tensors
    bool all = false;                  ///< sections show every tensor
    /// Globs: of the first and of the second of two dumps alone, the last two axes change places.
    std::vector<std::string> transposed_first, transposed_second;
    part_options parts;
};

/// A dump: one model, in one file or several.
struct opened_dump {
    std::shared_ptr<const io::reader> tensors;
    file_sizes files;
};

/// The source of dumps and threads; `control` is called first.
struct dump_environment {
    std::function<engine::run_control(std::span<const codec::recipe>)> control;
    std::function<opened_dump(const std::string& path, const input_options& in)> open;
    bool on_disk = true;  ///< paths may be patterns, which are expanded
};

/// Compares each dump with the next. The page is document_page's. Throws base::error.
report::document diff(const diff_options& o, const dump_environment& environment);

/// Whether `paths`, in which patterns are expanded, are results files: for `changes`, not `diff`.
/// Throws base::error (input) if they are results files and dumps.
bool are_results(const std::vector<std::string>& paths);

/// Compares two results files (schema mx.changes/1) instead of dumps. Of the options, the labels,
/// the recipes, and the tensors by name and role select what is compared; those about tensors as
/// they are read are refused. Throws base::error.
report::document changes(const diff_options& o, const std::vector<std::string>& paths,
                         const analysis::results_opener& open = analysis::open_results);

// Their schemas.
report::document_schema diff_schema();
report::document_schema changes_schema();

}  // namespace mx::documents
