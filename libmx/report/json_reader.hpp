// SPDX-License-Identifier: Apache-2.0
// Reads documents of write_json, for commands that use other commands' results.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "libmx/report/record.hpp"
#include "libmx/report/record_list.hpp"

namespace mx::report {

/// A document as write_json writes it: members before "results", the results, members after them.
struct results_file {
    record head;
    record_list results;
    record tail;
    std::string kind;  ///< "analysis" of the schema "mx.analysis/1"
};

/// Options of the reader.
struct read_options {
    /// The members of a result to keep, by name; all if empty. Others (for example histograms) are
    /// still validated but need no memory.
    std::function<bool(std::string_view)> keep;
    /// What an error asks for in place of a file that is not JSON.
    std::string_view expected =
        "results that mx wrote with --json, as in mx analyze MODEL --json results.json";
};

/// Supplies the next bytes of a document: fills the beginning of `out` and returns their number, 0
/// at the end.
using byte_source = std::function<std::size_t(std::span<char> out)>;

/// Reads results. 64-bit integers are read as integers and other numbers as doubles, so that
/// writing the document again gives the same bytes. For any input text, throws base::error (input)
/// with `path` and the byte position if it is not JSON, repeats a member's name, nests more than 16
/// deep, contains a string of more than 1 MiB or more than 2^25 values outside the scalar members
/// of results, or is not what mx writes: an object with a "schema" of "mx.NAME/1", or
/// "mx.report/3", and a list "results" of objects.
results_file read_results(const byte_source& source, const std::string& path,
                          const read_options& options = {});
results_file read_results(std::string_view text, const std::string& path,
                          const read_options& options = {});

/// Reads one JSON object of any members, under the same limits: throws base::error (input).
record read_object(const byte_source& source, const std::string& path);

}  // namespace mx::report
