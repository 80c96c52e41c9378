// SPDX-License-Identifier: Apache-2.0
// The way back from write_json: results that a command wrote, for the commands that judge them.
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

/// What may be asked of the reader.
struct read_options {
    /// Which members of a result are kept, by name; all of them when empty. What is not kept is
    /// checked all the same and costs no memory: histograms, say.
    std::function<bool(std::string_view)> keep;
};

/// Gives the next bytes of a document: fills the beginning of `out` and returns how many bytes
/// those are, 0 at the end.
using byte_source = std::function<std::size_t(std::span<char> out)>;

/// Reads results. Whole numbers of 64 bits come back as integers and others as doubles, so that
/// writing what was read gives the same bytes. The text may be anything: throws base::error (input)
/// with `path` and the byte where it is not JSON, repeats a member's name, nests more than 16 deep,
/// holds a text of more than 1 MiB or more than 2^25 values outside the scalar members of results,
/// or is not what mx writes: an object with a "schema" of "mx.NAME/1", or "mx.report/2", and a
/// list "results" of objects.
results_file read_results(const byte_source& source, const std::string& path,
                          const read_options& options = {});
results_file read_results(std::string_view text, const std::string& path,
                          const read_options& options = {});

/// Reads one JSON object of any members, under the same limits: throws base::error (input).
record read_object(const byte_source& source, const std::string& path);

}  // namespace mx::report
