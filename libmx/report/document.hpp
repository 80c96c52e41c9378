// SPDX-License-Identifier: Apache-2.0
// The output of a command: records for programs, sections for people. Every writer reads the same
// document, so that the outputs of one run agree.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libmx/report/figure.hpp"
#include "libmx/report/members.hpp"
#include "libmx/report/record.hpp"
#include "libmx/report/record_list.hpp"

namespace mx::report {

/// How a cell of a human table is printed.
enum class cell : std::uint8_t {
    text,         ///< wrapped at spaces when the table is too wide
    name,         ///< of a tensor or file: shortened in the middle when the table is too wide
    integer,      ///< thousands separated
    significant,  ///< real number with `digits` significant digits
    fixed,        ///< real number with `digits` decimals
    shortest,     ///< the fewest digits that read back exactly
    share,        ///< 0..1 printed as a percentage; 0 and 100 only when exact
    extents,      ///< list of integers printed as 64x128
};

/// A column of a human table: the record member `field` under `title` ('\n' breaks the title).
struct column {
    std::string field;
    std::string title;
    cell kind = cell::text;
    int digits = 4;
};

/// A line below a table.
struct note {
    enum class kind : std::uint8_t { paragraph, item, command };

    note(std::string paragraph) : text(std::move(paragraph)) {}  // NOLINT(*-explicit-*)
    note(const char* paragraph) : text(paragraph) {}             // NOLINT(*-explicit-*)
    note(kind of, std::string words) : text(std::move(words)), is(of) {}

    std::string text;
    kind is = kind::paragraph;
};
using notes = std::vector<note>;

/// Of a list.
inline note item(std::string text) { return {note::kind::item, std::move(text)}; }
/// To copy: on one line, however long.
inline note command(std::string text) { return {note::kind::command, std::move(text)}; }

/// One titled table followed by notes; either may be missing.
struct section {
    std::string heading = {};
    std::vector<column> columns = {};
    std::vector<record> rows = {};
    std::string group_field = {};  ///< when set, a change of this member prints a line above
    std::vector<note> notes = {};
    std::vector<figure> figures = {};  ///< HTML only; Markdown names them
    std::optional<explorer> all = {};  ///< HTML only: what the table above shows the worst of
    bool folded = false;               ///< HTML only: closed, headless ones with it; not on paper
    bool warns = false;                ///< terminal only: its items are coloured

    /// Adds a row: its first cells, in the order of the columns.
    template <typename... Cells>
    void add(const Cells&... cells) {
        record row;
        (row.emplace_back(columns[row.size()].field, to_value(cells)), ...);
        rows.push_back(std::move(row));
    }
    /// The same, in the group `group`.
    template <typename Group, typename... Cells>
    void add_to(const Group& group, const Cells&... cells) {
        add(cells...);
        rows.back().emplace_back(group_field, to_value(group));
    }
};

/// The JSON object is the members of `head`, then "results", then the members of `tail`; CSV is
/// the scalar members of `results`; Markdown, HTML and the terminal show `sections`.
struct document {
    std::string title;  ///< of the page
    record head;
    record_list results;
    record tail;
    std::vector<section> sections;
    std::string subtitle = {};  ///< of the page: a line below the title
    /// Members of `tail` that are too long to store: in JSON these lists replace the stored ones.
    std::vector<std::pair<std::string, record_list>> long_members = {};
};

/// What the destination supports.
struct layout {
    int width = 100;         ///< columns of the human table
    std::string title = {};  ///< in place of the document's, where a page has one
};

}  // namespace mx::report
