// SPDX-License-Identifier: Apache-2.0
// Reads tables as RFC 4180 CSV with a header line, from write_csv or other programs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/report/json_reader.hpp"

namespace mx::report {

/// A table of texts. Every row has a field for each name.
struct csv_table {
    struct row {
        std::size_t line = 0;  ///< of the file, from 1
        std::vector<std::string> fields;
    };
    std::string path;  ///< for messages
    std::vector<std::string> names;
    std::vector<row> rows;

    /// The column named `name`; nullopt if there is none.
    std::optional<std::size_t> find(std::string_view name) const;
    /// The same. Throws base::error (input) with the existing columns if there is none.
    std::size_t column(std::string_view name) const;
};

/// Reads a table. Accepts a byte order mark, CRLF, empty lines, and blanks around unquoted fields.
/// For any input text, throws base::error (input) with `path` and the line if a quote is not closed
/// or not followed by the end of its field, if a line has more or fewer fields than the header, if
/// the header has a repeated or empty name, and beyond 2^20 rows, 1,024 columns or 64 MiB.
csv_table read_csv(const byte_source& source, const std::string& path);

/// The number in a field, in the syntax of std::from_chars without surrounding blanks; nullopt for
/// anything else, including "nan" and "inf".
std::optional<double> finite_number(std::string_view field);

}  // namespace mx::report
