// SPDX-License-Identifier: Apache-2.0
// The patterns by which quantization_config names modules. For .cpp files of this room only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

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

/// A name without the leading words that writers add or drop: model, language_model.
std::string_view without_wrappers(std::string_view name);

}  // namespace mx::lint
