// SPDX-License-Identifier: Apache-2.0
// Outputs of results: a human table on stdout, and one file per requested writer.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/mx/cli.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/members.hpp"
#include "libmx/report/writers.hpp"
#include "libmx/studies/convert/convert.hpp"

namespace mx::app {

// Shorthands for members of records and columns of tables.
using pages::integer;
using pages::real;
using pages::text;
using pages::undefined;
using report::cell;
using report::to_list;

/// --json, --csv, --markdown: one option per writer but the table, in the order of the list.
struct output_options {
    std::array<std::string, report::writers.size()> paths;
    std::string title;  ///< of pages and Markdown, in place of the command's own
    std::string color = "auto";
    /// The path of the writer of this name.
    std::string& path_of(std::string_view writer);
};
void declare_outputs(parser& cmd, output_options& out);

/// The opened destinations. They are opened before the work starts, so that an unwritable path
/// fails immediately; files get their final names in finish() only.
class outputs {
  public:
    /// Throws base::error: usage if two outputs are the same file, or an output is one of `inputs`
    /// (`more` are outputs written by the command itself); output if a path cannot be written.
    outputs(const output_options& options, const std::vector<std::string>& inputs,
            const std::vector<std::string>& more = {});

    /// Every file that is written.
    const std::vector<std::string>& paths() const { return paths_; }

    /// Whether the writer of this name has a destination.
    bool wants(std::string_view writer) const;

    /// Replaces the document for one writer.
    struct page {
        std::string_view writer;
        const report::document* of;
    };

    /// Writes every destination. The table goes to stdout unless another writer uses stdout or
    /// `quiet` is set.
    void finish(const report::document& d, bool quiet, const std::vector<page>& pages = {});

  private:
    struct destination {
        const report::writer* writer;
        std::string path;
        io::output_file file;
    };
    const report::writer* on_stdout_ = nullptr;
    std::string title_;
    bool color_;
    std::vector<std::string> paths_;
    std::vector<destination> files_;
};

/// Finishes a command whose page is generated from its document (pages::document_page).
void write_with_page(outputs& to, const report::document& d, bool quiet);
/// The same, after pages::finish_document with these sentences as the items of the verdict, and
/// these sections after the view.
void finish_with_page(outputs& to, report::document& d, const std::vector<std::string>& sentences,
                      bool quiet, std::vector<report::section> after = {});

/// Runs a command that only prints the result of make(). Returns the exit code.
int print_document(const output_options& options, const std::function<report::document()>& make,
                   bool quiet = false);

/// Prints the result of cast, quantize and dequantize, unless `quiet`: one line about the output,
/// with what happened to tensors ("quantized") and how many were copied, and one per tensor that is
/// copied or skipped.
void report_conversion(const convert::conversion& done, std::string_view what,
                       const std::string& out, bool quiet);

/// Throws base::error (usage) for an output that is also an input or another output. "-", devices
/// and pipes may be named twice.
void require_distinct(const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs);

}  // namespace mx::app
