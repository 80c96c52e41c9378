// SPDX-License-Identifier: Apache-2.0
// Tables as RFC 4180 CSV with a header line: what write_csv writes, and what others do.
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

    /// The column named `name`; none where there is none.
    std::optional<std::size_t> find(std::string_view name) const;
    /// The same. Throws base::error (input) that names the columns there are.
    std::size_t column(std::string_view name) const;
};

/// Reads a table. A byte order mark, CRLF, empty lines and blanks around fields without
/// quotes are fine. The text may be anything: throws base::error (input) with `path` and the line
/// where a quote is not closed or not followed by the end of its field, where a line has more or
/// fewer fields than the header, where the header repeats a name or has an empty one, and beyond
/// 2^20 rows, 1,024 columns or 64 MiB.
csv_table read_csv(const byte_source& source, const std::string& path);

/// The number that a field spells: digits as std::from_chars takes them, without blanks around
/// them; none for anything else, "nan" and "inf" included.
std::optional<double> finite_number(std::string_view field);

}  // namespace mx::report
