// SPDX-License-Identifier: Apache-2.0
// Reads source text and finds violations of the rules of the source tree.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mx::architecture {

/// A file of the repository: its path from the root, with forward slashes, and its text.
struct source_file {
    std::string path;
    std::string text;
};

/// Every file in the folders with sources, and the build files at the root, by path.
std::vector<source_file> repository(const std::string& root);

/// Include lines that violate the order of rooms, include a confined library elsewhere, or name a
/// project file for which `exists` is false. One "path:line: what" each.
std::vector<std::string> include_violations(const source_file& file,
                                            const std::function<bool(const std::string&)>& exists);

/// Headers of libmx that open another namespace than that of their folder. Allowed are namespaces
/// within it that do not belong to a folder, and declarations of classes of others. One "path:line:
/// what" each.
std::vector<std::string> namespace_violations(const std::vector<source_file>& files);

/// Rooms of more lines than `most_lines_of_a_room`, without blank lines and comments. One "room:
/// lines" each.
std::vector<std::string> size_violations(const std::vector<source_file>& files);

/// A missing licence line, a header without #pragma once, a note of unfinished work. One
/// "path:line: what" each; files that are not sources are ignored.
std::vector<std::string> file_violations(const source_file& file);

/// Columns of tables whose title and format stand in more than one place of the rooms that make
/// tables: libmx/pages/views/values.cpp lists those of several tables. One "path:line: what" each.
std::vector<std::string> column_violations(const std::vector<source_file>& files);

}  // namespace mx::architecture
