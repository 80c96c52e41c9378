// SPDX-License-Identifier: Apache-2.0
// Generates docs/reference, two pages of docs/design, the man page and JSON Schemas from the lists.
// Prose is in the files of manual/, which name the tables to insert.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"
#include "libmx/report/html/assets.hpp"

namespace mx::app {

/// Writes the pages below `directory`, creating folders as needed. Throws base::error (output).
void write_manual(const std::string& directory);
/// Writes man/mx.1 and schemas/*.json, which are installed but not committed, likewise.
void write_share(const std::string& directory);

// Content of the pages that commands also print.
std::string dialects_page();      ///< its disagreements are answered by running the code
std::string accumulators_page();  ///< docs/design/gemm.md
std::string members_schema();     ///< schemas/members.json

// Schemas of documents that commands assemble.
report::document_schema bench_schema();
report::document_schema build_check_schema();
report::document_schema presets_schema();
report::document_schema runs_schema();
report::document_schema shards_schema();
report::document_schema tensors_schema();
report::document_schema train_schema();
report::document_schema training_cost_schema();
report::document_schema verify_schema();
report::document_schema version_schema();

/// The first line of every page.
inline constexpr std::string_view made_by =
    "<!-- Made by `mx help --write-manual docs` from the lists of the program; do not edit. -->";

/// Escapes text that Markdown would read as a tag, a table cell or emphasis.
std::string plain(std::string_view text);

/// line(row) of every row, one per line.
template <typename List, typename Line>
std::string lines_of(const List& list, Line line) {
    std::string out;
    for (const auto& row : list) out += fmt::format("{}{}", out.empty() ? "" : "\n", line(row));
    return out;
}

using report::html::asset;
asset dialects_md();
asset gemm_md();
asset metrics_md();

/// A file of manual/ with the names in braces replaced.
template <typename... Args>
std::string filled(const asset& page, const Args&... args) {
    return fmt::format(fmt::runtime(page.text), fmt::arg("made_by", made_by), args...);
}

}  // namespace mx::app
