// SPDX-License-Identifier: Apache-2.0
// Lists of modules in configurations. For .cpp files of this folder only.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mx::lint {

/// Entries are a module's name, its beginning or its end, a pattern with * and ?, or after "re:" a
/// regular expression. Of regular expressions, those that are patterns in effect are applied
/// (literals, '.', ".*", "\.", "^", "$"); any other may match whatever there is.
class module_list {
  public:
    /// Patterns beyond `most_patterns` may match whatever there is, so that a hostile list costs no
    /// more time.
    static constexpr std::size_t most_patterns = 1000;

    void add(const std::string& entry);
    const std::set<std::string, std::less<>>& names() const { return names_; }

    /// The entry that has the module; empty: none has.
    std::string_view entry_of(std::string_view module) const;
    /// Whether an entry may have it, all considered.
    bool may_have(std::string_view module) const { return unsure_ || !entry_of(module).empty(); }

  private:
    struct pattern {
        std::string text, glob;
    };
    std::set<std::string, std::less<>> names_;
    std::vector<pattern> patterns_;
    bool unsure_ = false;
};

}  // namespace mx::lint
