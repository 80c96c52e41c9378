// SPDX-License-Identifier: Apache-2.0
// The contents of a Python pickle as plain data. Nothing is imported, called or built: a call in
// the pickle is a node that names the function and its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/io/read_budget.hpp"

namespace mx::io {

/// A value of a pickle_graph.
using pickle_ref = std::uint32_t;
inline constexpr pickle_ref no_value = ~pickle_ref{0};

enum class pickle_kind : std::uint8_t {
    none,
    truth,
    integer,      ///< fits 64 bits
    big_integer,  ///< larger; its value is not stored
    real,
    text,
    bytes,
    tuple,
    list,
    set,
    dict,
    global,      ///< a name of some module
    object,      ///< the result of calling `callee` with `arguments`
    persistent,  ///< something outside the pickle, named by `arguments`
};

/// One value. Containers may contain themselves.
struct pickle_value {
    pickle_kind kind = pickle_kind::none;
    bool pairs = false;  ///< items are key, value, key, value, ...
    bool made = false;   ///< object: by __new__ of a class, not by a function
    std::uint32_t items = no_value;
    std::uint64_t word = 0;  ///< bits of the number; offset (high half) and length of the text
    pickle_ref callee = no_value;     ///< object: what is called; global: its module
    pickle_ref arguments = no_value;  ///< object: a tuple; persistent: its name; global: its name
    pickle_ref state = no_value;      ///< object: what it was to be filled with
};

/// Limits that bound the memory of a pickle of any size; the budget of the file bounds that of a
/// small one.
inline constexpr std::uint64_t pickle_size_limit = std::uint64_t{128} << 20;
inline constexpr std::size_t pickle_value_limit = std::size_t{1} << 24;
inline constexpr std::size_t pickle_item_limit = std::size_t{1} << 26;

class pickle_graph {
  public:
    pickle_graph(std::string bytes, std::shared_ptr<read_budget> budget)
        : bytes_(std::move(bytes)), budget_(std::move(budget)) {}

    pickle_ref root() const { return root_; }
    std::size_t size() const { return values_.size(); }
    const pickle_value& operator[](pickle_ref ref) const { return values_[ref]; }
    /// Of the file: whoever follows references more than once takes from it.
    read_budget& budget() const { return *budget_; }

    // no_value is of kind none; it has no text, no items and no attributes.

    pickle_kind kind(pickle_ref ref) const {
        return ref == no_value ? pickle_kind::none : values_[ref].kind;
    }
    /// Text or bytes; empty for everything else.
    std::string_view text(pickle_ref ref) const;
    std::optional<std::int64_t> integer(pickle_ref ref) const;
    /// An integer that is not negative.
    std::optional<std::uint64_t> count(pickle_ref ref) const;
    bool truth(pickle_ref ref) const;
    /// The items of a container or an object; see `pairs`.
    std::span<const pickle_ref> items(pickle_ref ref) const;
    /// Item `index` of a tuple or list, no_value if there is none.
    pickle_ref at(pickle_ref ref, std::size_t index) const;
    /// The value under the text `key` in a dict or in an object filled like one; no_value if there
    /// is none. The last of several counts.
    pickle_ref find(pickle_ref ref, std::string_view key) const;
    /// The same in the state of an object.
    pickle_ref attribute(pickle_ref ref, std::string_view name) const;

    bool is_global(pickle_ref ref, std::string_view module, std::string_view name) const;
    /// "module.name" of a global, and of attributes reached from one by getattr; "" for other
    /// values. Each part is cut after 100 bytes.
    std::string global_name(pickle_ref ref) const;
    /// The class or function behind an object: "module.name".
    std::string class_name(pickle_ref ref) const;

  private:
    friend class pickle_machine;
    std::string bytes_;
    std::shared_ptr<read_budget> budget_;
    std::vector<pickle_value> values_;
    std::vector<std::vector<pickle_ref>> items_;
    pickle_ref root_ = no_value;
};

/// Reads a pickle of protocol 2 to 5 (and what later protocols share with older ones). `file` and
/// `entry` are named in errors, which are base::error (input) with the offset in the pickle.
/// `stored_bytes`: those of the pickle in the file, if it is compressed there; 0: all.
pickle_graph read_pickle(std::string bytes, const std::string& file, const std::string& entry,
                         std::uint64_t stored_bytes = 0);

}  // namespace mx::io
