// SPDX-License-Identifier: Apache-2.0
// Members of records, declared once: the record that is written and its JSON Schema both come from
// the declaration.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libmx/report/members.hpp"
#include "libmx/report/record.hpp"

namespace mx::report {

/// What a schema states of a member. `type` is one of
///   string, boolean, number, integer
///   count, ordinal         integers from 0, from 1
///   amount, positive       numbers from 0, above 0
///   share                  a number from 0 to 1
///   a|b or =a              one of these texts
///   #record, @file#record  a record that this schema, or file.json, defines
/// X? is also null; [X] is a list of X, and {X} an object with any names.
struct member_type {
    std::string_view name;
    std::string_view type;
    std::string_view text;  ///< one line: meaning and unit; may be empty
    bool always = true;
};

/// A member of the records made of a T, and how its value is read from one. If it is not always
/// there, it is left out where the value is null.
template <typename T>
struct declared : member_type {
    value (*of)(const T&);

    /// `read` is a lambda without captures; what it returns becomes a value by to_value.
    template <typename Read>
    constexpr declared(std::string_view n, std::string_view t, std::string_view says, Read,
                       bool is_always = true)
        : member_type{n, t, says, is_always},
          of([](const T& x) -> value { return to_value(Read{}(x)); }) {}
};

/// Adds the members of `x` to a record, in the order of the declarations.
template <typename T, std::size_t N>
void append(record& r, const std::array<declared<T>, N>& members, const T& x,
            const std::string& prefix = {}) {
    for (const declared<T>& m : members) {
        value v = m.of(x);
        if (!m.always && std::holds_alternative<std::monostate>(v)) continue;
        r.emplace_back(prefix + std::string(m.name), std::move(v));
    }
}
/// The record of `x`.
template <typename T, std::size_t N>
record written(const std::array<declared<T>, N>& members, const T& x) {
    record r;
    append(r, members, x);
    return r;
}

/// Members of several declarations, some under names with a prefix.
class member_list {
  public:
    member_list() = default;
    member_list(const member_list&) = delete;
    member_list& operator=(const member_list&) = delete;

    member_list& add(const member_type& m, std::string_view prefix = {});
    template <typename Members>
    member_list& add(const Members& all, std::string_view prefix = {}) {
        for (const member_type& m : all) add(m, prefix);
        return *this;
    }
    auto begin() const { return all_.begin(); }
    auto end() const { return all_.end(); }

  private:
    std::deque<std::string> names_;
    std::vector<member_type> all_;
};

/// The JSON Schema of a document, which rejects members that it does not declare.
class document_schema {
  public:
    /// `schema` is the document's member of that name: mx.NAME/VERSION.
    document_schema(std::string_view schema, std::string_view title, std::string_view text);

    document_schema& member(const member_type& m);
    template <typename Members>
    document_schema& members(const Members& all) {
        for (const member_type& m : all) member(m);
        return *this;
    }
    /// A record that types name as #name, and those of other schemas as @file#name.
    template <typename Members>
    document_schema& define(std::string_view name, const Members& all) {
        record_schema r;
        for (const member_type& m : all) r.add(m);
        definitions_.emplace_back(name, r.written());
        return *this;
    }

    /// NAME-VERSION.json
    std::string file() const;
    std::string text() const;

  private:
    struct record_schema {
        record properties;
        list required;

        void add(const member_type& m);
        record written() const;
    };

    std::string schema_;
    record head_;
    record_schema members_;
    record definitions_;
};

}  // namespace mx::report
