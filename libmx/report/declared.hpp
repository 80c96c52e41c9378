// SPDX-License-Identifier: Apache-2.0
// Members of records, declared once: the record that is written and its JSON Schema both come from
// the declaration.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
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
///   /regex/                a text that this matches
///   #record, @file#record  a record that this schema, or file.json, defines; #a|#b: one of these
///   any                    any value
/// X? is also null; [X] is a list of X, and {X} an object with any names.
struct member_type {
    std::string_view name;
    std::string_view type;
    std::string_view text;  ///< one line: meaning and unit; may be empty
    bool always = true;
};

/// A value that is there, or not: of a member X? that is not always there.
template <typename X>
std::optional<value> only_if(bool there, const X& x) {
    return there ? std::optional<value>(to_value(x)) : std::nullopt;
}

/// A member of the records made of a T, and how its value is read from one. If it is not always
/// there, it is left out where there is none, and where it is null but no X?.
template <typename T>
struct declared : member_type {
    std::optional<value> (*of)(const T&);

    /// `read` is a lambda without captures; what it returns becomes a value by to_value, unless it
    /// is that of only_if.
    template <typename Read>
    constexpr declared(std::string_view n, std::string_view t, std::string_view says, Read,
                       bool is_always = true)
        : member_type{n, t, says, is_always}, of([](const T& x) -> std::optional<value> {
              auto v = Read{}(x);
              if constexpr (std::same_as<decltype(v), std::optional<value>>) {
                  return v;
              } else {
                  return to_value(v);
              }
          }) {
        static_assert(std::is_empty_v<Read>);
    }
};

/// Adds the members of `x` to a record, in the order of the declarations.
template <typename T, std::size_t N>
void append(record& r, const std::array<declared<T>, N>& members, const T& x,
            const std::string& prefix = {}) {
    for (const declared<T>& m : members) {
        std::optional<value> v = m.of(x);
        const bool null = !v || std::holds_alternative<std::monostate>(*v);
        if (!m.always && null && !(v && m.type.ends_with('?'))) continue;
        r.emplace_back(prefix + std::string(m.name), std::move(v).value_or(value()));
    }
}
/// The record of `x`.
template <typename T, std::size_t N>
record written(const std::array<declared<T>, N>& members, const T& x) {
    record r;
    append(r, members, x);
    return r;
}
/// The records of all `x`.
template <typename T, std::size_t N, typename Range>
list listed(const std::array<declared<T>, N>& members, const Range& all) {
    return to_list(all, [&](const T& x) { return written(members, x); });
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
    /// Members that some records lack.
    template <typename Members>
    member_list& add_of_some(const Members& all) {
        for (const member_type& m : all) add({m.name, m.type, m.text, false});
        return *this;
    }
    /// A text for a member that is added; it lives as long as this list.
    std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }
    auto begin() const { return all_.begin(); }
    auto end() const { return all_.end(); }

  private:
    std::deque<std::string> texts_;
    std::vector<member_type> all_;
};

/// The JSON Schema of a document, which rejects members that it does not declare.
class document_schema {
  public:
    /// `schema` is the document's member of that name: mx.NAME/VERSION. A document that people
    /// write need not name its tool.
    document_schema(std::string_view schema, std::string_view title, std::string_view text,
                    bool has_tool = true);

    document_schema& member(const member_type& m);
    template <typename Members>
    document_schema& members(const Members& all) {
        for (const member_type& m : all) member(m);
        return *this;
    }
    /// Members that a document has all of, or none.
    template <typename Members>
    document_schema& members_together(const Members& all) {
        std::string_view first;
        for (const member_type& m : all) {
            member({m.name, m.type, m.text, false});
            if (first.empty()) first = m.name;
            depend(first, m.name);
            depend(m.name, first);
        }
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

    /// A record with the members of another, #NAME or @file#NAME, and more.
    template <typename Members>
    document_schema& define_more(std::string_view name, std::string_view of, const Members& all) {
        record_schema r;
        for (const member_type& m : all) r.add(m);
        definitions_.emplace_back(name, r.written(of));
        return *this;
    }
    /// A condition on the document that types do not state.
    document_schema& condition(std::string_view keyword, record of);

    /// NAME-VERSION.json
    std::string file() const;
    std::string text() const;

  private:
    struct record_schema {
        record properties;
        list required;

        void add(const member_type& m);
        record written(std::string_view more_than = {}) const;
    };

    // A document with member `a` has member `b`.
    void depend(std::string_view a, std::string_view b);

    std::string schema_;
    record head_;
    record_schema members_;
    record conditions_, dependencies_, definitions_;
};

}  // namespace mx::report
