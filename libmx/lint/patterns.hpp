// SPDX-License-Identifier: Apache-2.0
// The patterns by which quantization_config names modules. For .cpp files of this room only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/base/text_tables.hpp"

namespace mx::lint {

/// An entry of a list of modules: a name, a pattern with * ? [set], or "re:" and a regular
/// expression of Python that must match from the first character on.
class module_pattern {
  public:
    explicit module_pattern(std::string text);
    ~module_pattern();
    module_pattern(module_pattern&&) noexcept;

    const std::string& text() const { return text_; }
    /// A name without special characters.
    bool is_name() const;
    /// Whether it is the name of the module, or matches all of it.
    bool matches(std::string_view module) const;
    /// The same, or of a module around it, in any of the spellings of engines: a part of the name
    /// is enough. Also if an expression cannot be evaluated.
    bool may_match(std::string_view module) const;

  private:
    struct expression;
    std::string text_;
    std::unique_ptr<expression> expression_;
};

/// A list of them. Names are looked up; what a list that is made to cost time may take is bounded:
/// patterns that are not tried any more match nothing, and may match everything.
class module_list {
  public:
    void add(std::string text);
    bool empty() const { return entries_.empty(); }
    const std::vector<module_pattern>& entries() const { return entries_; }
    /// The first name, else the first pattern, that matches; null: none.
    const module_pattern* match(std::string_view module) const;
    bool may_match(std::string_view module) const;

  private:
    bool spend(const module_pattern& on) const;

    std::vector<module_pattern> entries_;
    base::text_map<std::size_t> names_;  ///< place of each
    std::vector<std::size_t> patterns_;  ///< places of those that are no names
    mutable std::uint64_t left_ = 100'000'000;
};

/// A name without the leading words that writers add or drop: model, language_model.
std::string_view without_wrappers(std::string_view name);

}  // namespace mx::lint
