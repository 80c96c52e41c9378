// SPDX-License-Identifier: Apache-2.0
// The typed record that every writer reads: an ordered list of named values. Writers are
// independent of tensors and recipes, so a new metric or column needs no change here.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace mx::report {

struct value;
using list = std::vector<value>;

/// One value. std::monostate is null: undefined, never zero. Non-finite doubles are not allowed in
/// records; the producer must decide what they mean.
struct value : std::variant<std::monostate, bool, std::int64_t, double, std::string, list,
                            std::vector<std::pair<std::string, value>>> {
    using variant::variant;
    // Defined in record.cpp: inline, these six made up a third of the compile time of code that
    // makes records.
    value() noexcept;
    value(const value&);
    value(value&&) noexcept;
    value& operator=(const value&);
    value& operator=(value&&) noexcept;
    ~value();
};

/// An ordered object: names in output order.
using record = std::vector<std::pair<std::string, value>>;

/// The member `name` of `r`, or nullptr.
const value* find(const record& r, std::string_view name);
/// Deleted for temporaries: the pointer would dangle.
const value* find(record&& r, std::string_view name) = delete;

}  // namespace mx::report
