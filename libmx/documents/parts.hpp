// SPDX-License-Identifier: Apache-2.0
// Documents in parts: what --shard i/N adds to a document, and how the parts become the document of
// one run. A part is a document about the tensors that are in it as a whole, with two further
// members: `part`, which identifies the part and the run, and `part_sums`, from which the whole is
// completed.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/documents/inputs.hpp"
#include "libmx/engine/parts.hpp"
#include "libmx/report/command_line.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"

namespace mx::documents {

struct part_options {
    std::string shard;                ///< "3/7"; empty: all of it
    bool page_sums = false;           ///< of a part: also the sums for a page
    std::vector<std::string> merged;  ///< files of all parts, which are merged
    report::command_line given;       ///< command, files and options that parts have in common
};

/// THE LIST of what a part may be of: commands, and options that decide what a run computes and
/// shows. Outputs and what does not change them (threads, backend) are not among them: a part comes
/// from others, and mx merge takes nothing else from it.
inline constexpr std::array part_commands{"analyze", "compare", "cluster", "diff", "quantize"};
inline constexpr auto part_option_names = std::to_array<std::string_view>(
    {"tensor", "as", "shape", "dtype", "byte-offset", "raw", "integers", "swizzled", "split",
     "transpose", "experts", "heads", "role", "role-pattern", "norm-bias", "group", "recipe",
     "sha256", "policy", "target", "eval", "all", "fail-above", "regret",
     // analyze
     "histograms", "decompose", "worst",
     // compare
     "element", "scale-format", "dialect", "transform", "transform-size", "offset", "axis", "block",
     "round", "scale", "draws", "phase-sweep", "no-regret", "baseline", "top", "layers",
     // diff
     "labels", "as-given", "transpose-first", "transpose-second",
     // quantize
     "plan", "all-tensors", "keep-rest", "packed"});

/// Whether the value of an option of a part is the path of a file beside the model.
bool names_file(const report::given_option& o);

/// The identity of a part.
struct part_head {
    std::string path;  ///< of its file
    engine::part_number number;
    bool page_sums = false;
    std::string version;         ///< of mx
    report::command_line given;  ///< as in part_options; names of its options are in THE LIST
    report::list inputs;         ///< path, bytes and time of change of every file
    std::string tensors;         ///< digest of names, dtypes and shapes
};

/// Reads it from a results file, or from one of arrays (.safetensors). Throws base::error (input)
/// if the file is not a part.
part_head read_part_head(const std::string& path);

/// Refuses (base::error, input) parts that are not of one run: of other options, versions or files,
/// of another number of parts, or one part twice. Returns the numbers that are missing.
std::vector<std::uint64_t> missing_parts(const std::vector<part_head>& heads);

/// The part that options request, or all that they name; null: none.
std::shared_ptr<engine::partial_run> partial_run_of(const part_options& o);
/// Whether a part is made.
inline bool is_part(const std::shared_ptr<engine::partial_run>& partial) {
    return partial && !partial->merges;
}

/// The files of the tensors `of` and those that options of a part name, as in part_head.
struct part_inputs {
    part_inputs(const file_sizes& opened, const std::vector<engine::tensor_ref>& of,
                const part_options& o);

    report::list files;
    std::string tensors;
};

/// The identity of a part, as JSON.
std::string part_text(const part_options& o, const part_inputs& inputs, std::uint64_t bytes);

/// Refuses (base::error, input) parts of files that have changed since, and a page of parts without
/// the sums for it.
void check_parts(const part_options& o, const part_inputs& now, bool with_page);

/// Adds the members of a part, and replaces the sections by one sentence.
void finish_part(report::document& d, const part_options& o, const engine::partial_run& partial,
                 const part_inputs& inputs);
/// These members.
void declare_part(report::document_schema& to);

}  // namespace mx::documents
