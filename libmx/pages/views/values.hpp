// SPDX-License-Identifier: Apache-2.0
// Shorthands for the members of records.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libmx/pages/views/view_options.hpp"
#include "libmx/report/document.hpp"

namespace mx::pages {

inline report::value text(std::string_view s) { return std::string(s); }

template <std::integral I>
report::value integer(I n) {
    return static_cast<std::int64_t>(n);
}

inline report::value real(double x) { return x; }

/// The member `name` as a number; `otherwise` if it is missing or not a number.
inline double number_or(const report::record& r, std::string_view name, double otherwise) {
    return report::number_of(r, name).value_or(otherwise);
}
/// `x` without its fraction; 0 for NaN and negative numbers, and at most 2^63 - 1.
std::uint64_t counted(double x);
/// The member `name` as a count; 0 if it is missing or not a number.
std::uint64_t count_of(const report::record& r, std::string_view name);

/// The members `schema` and `tool` (name, version), which start every document.
report::record document_head(const std::string& schema);

/// A column of a table by its member. values.cpp lists the titles and formats of those that several
/// tables show; any other member is its own title, as text.
struct column_of : report::column {
    column_of(const char* member);
    column_of(const char* member, int decimals);      ///< with other digits
    column_of(std::string member, std::string head);  ///< with another title
    column_of(std::string member, std::string head, report::cell as, int decimals = 4)
        : report::column{std::move(member), std::move(head), as, decimals} {}
};

std::vector<report::column> columns_of(std::initializer_list<column_of> columns);

/// Of the results of a product, the share of the elements that summing gives exactly.
report::value exact_share(const report::record& r);

/// Shows `as` instead of a member if it is present.
void show(report::record& row, std::string_view member, std::string_view as);

/// An SQNR in a table: "exact" without an error, which has no logarithm.
report::value sqnr_cell(std::optional<double> db, bool exact);

/// The worst member of a group without what it has in common with the group's name, but for a word
/// before: "experts.17".
std::string short_member(const std::string& group, const std::string& member);

/// As many of the rows as the view shows; a note says how many there are.
void fill(report::section& to, std::vector<report::record> rows, const view_options& o);

/// "Left out": the member `left_out` as a table of tensors, recipes and reasons.
report::section left_out_of(const report::record& tail, const view_options& o);
/// The same table without rows.
report::section left_out_section();

/// Adds a section unless it is empty: without a row, a note, a figure or an explorer.
void put(std::vector<report::section>& to, report::section s);

/// Null, which prints as "-" and is empty in CSV.
inline report::value undefined() { return std::monostate{}; }
/// Null if the text is empty.
inline report::value text_or_null(std::string_view s) { return s.empty() ? undefined() : text(s); }

}  // namespace mx::pages
