// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/commands.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "libmx/base/glob.hpp"

namespace mx::policy {
namespace {

// Options that select tensors; a command about one tensor has none of them.
constexpr std::array<std::string_view, 3> selecting{"tensor", "role", "group"};
// Views of the tensors that a pattern matches, before a '=' or a '@' where they have one.
constexpr std::array<std::string_view, 4> viewing{"split", "transpose", "experts", "heads"};

template <std::size_t N>
bool has_name(const std::array<std::string_view, N>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether a view applies to a tensor: its pattern matches the name, or the part of the name to
// which views have added ".q" or ".0".
bool views(const report::given_option& o, const std::string& tensor) {
    std::string glob = o.value.value_or("");
    if (o.name == "split" || o.name == "heads") glob = glob.substr(0, glob.rfind('='));
    const std::size_t axis = o.name == "split" ? glob.rfind('@') : std::string::npos;
    if (axis != std::string::npos &&
        glob.find_first_not_of("-0123456789", axis + 1) == std::string::npos) {
        glob.resize(axis);
    }
    for (std::size_t end = tensor.size(); end != std::string::npos && end > 0;
         end = tensor.rfind('.', end - 1)) {
        if (base::glob_match(glob, std::string_view(tensor).substr(0, end))) return true;
    }
    return false;
}

}  // namespace

report::command_line measuring_command(const report::given_command& by,
                                       const std::vector<std::string>& recipes,
                                       std::span<const report::given_option> judging) {
    report::command_line line = by.line;
    // compare would rank them; cluster sees vectors in other shapes.
    if (line.command != "cluster") line.command = "analyze";
    line.set("recipe", recipes);
    line.options.insert(line.options.end(), judging.begin(), judging.end());
    return line;
}

std::string command_of(const missing_recipes& m, std::span<const report::given_option> judging) {
    if (!m.by) return {};
    report::command_line line = measuring_command(*m.by, m.recipes, {});
    if (!m.tensors.empty()) {
        std::vector<std::string> globs;
        for (const std::string& t : m.tensors) globs.push_back(base::exact_glob(t));
        line.set("tensor", globs);
    }
    line.options.insert(line.options.end(), judging.begin(), judging.end());
    return line.text();
}

std::string show_command(const report::given_command* by, const std::string& file,
                         const std::string& tensor, const std::string& recipe) {
    if (by == nullptr) return {};
    report::command_line line = by->line;
    line.command = "show";
    line.files = {by->argument_of(file)};
    line.tensor = tensor;
    std::erase_if(line.options, [&](const report::given_option& o) {
        return has_name(selecting, o.name) || (has_name(viewing, o.name) && !views(o, tensor));
    });
    line.set("recipe", {recipe});
    return line.text();
}

}  // namespace mx::policy
