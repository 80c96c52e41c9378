// SPDX-License-Identifier: Apache-2.0
// Helpers for members of records: writing and reading counts and shares.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/report/record.hpp"

namespace mx::report {

/// A count.
template <std::integral I>
value tally(I n) {
    return static_cast<std::int64_t>(n);
}

/// The value of a number, a text or an optional: null for an empty optional and for NaN.
template <typename T>
value to_value(const T& x) {
    if constexpr (std::same_as<T, value> || std::same_as<T, bool>) {
        return x;
    } else if constexpr (std::integral<T>) {
        return tally(x);
    } else if constexpr (std::floating_point<T>) {
        return std::isnan(x) ? value() : value(double{x});
    } else if constexpr (std::convertible_to<T, std::string_view>) {
        return std::string(std::string_view(x));
    } else if constexpr (requires { x.has_value(); }) {
        return x ? to_value(*x) : value();
    } else {
        return value(x);
    }
}

/// make(x) for every x of a range.
template <typename Range, typename Make>
list to_list(const Range& range, Make make) {
    list all;
    for (const auto& x : range) all.emplace_back(make(x));
    return all;
}
/// The values of numbers or texts.
template <typename Range>
list to_list(const Range& range) {
    return to_list(range, [](const auto& x) { return to_value(x); });
}

/// Null if the number is not finite.
value finite_or_null(double x);
/// part / whole; null if whole is 0.
inline value share(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) return {};
    return static_cast<double>(part) / static_cast<double>(whole);
}

/// The member `name` as a T (a list, a record, ...); nullptr if it is missing or not a T.
template <typename T>
const T* member(const record& r, std::string_view name) {
    const value* v = find(r, name);
    return v == nullptr ? nullptr : std::get_if<T>(v);
}
template <typename T>
const T* member(record&& r, std::string_view name) = delete;

/// The member `name`, whatever it is; null if it is missing.
inline value value_of(const record& r, std::string_view name) {
    const value* v = find(r, name);
    return v == nullptr ? value() : *v;
}

/// The number in `v`; nullopt for null and for other types.
std::optional<double> number_of(const value& v);
/// The member `name` as a number; nullopt if it is missing or not a number.
std::optional<double> number_of(const record& r, std::string_view name);
/// `x` truncated to an integer and limited to the range of std::int64_t; 0 for NaN.
std::int64_t whole(double x);
/// The member `name` as a text; empty if it is missing or not a text.
std::string text_of(const record& r, std::string_view name);

/// The records of a member that is a list; empty if there is no such list.
std::vector<record> records_in(const record& r, std::string_view name);

}  // namespace mx::report
