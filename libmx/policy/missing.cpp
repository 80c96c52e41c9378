// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/missing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace mx::policy {
namespace {

// A command names at most this many tensors; for more it measures all.
constexpr std::size_t named_tensors = 4;

// A glob that matches only this name.
std::string exactly(const std::string& name) {
    std::string glob;
    for (const char c : name) {
        if (std::string_view("*?[\\").find(c) != std::string_view::npos) glob += '\\';
        glob += c;
    }
    return glob;
}

}  // namespace

std::string shell_word(const std::string& text) {
    constexpr std::string_view plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
    if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
    const auto control = [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; };
    if (std::any_of(text.begin(), text.end(), control)) {
        std::string out = "$'";
        for (const char c : text) {
            if (control(c)) {
                out += fmt::format("\\x{:02x}", c);
            } else {
                out += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
            }
        }
        return out + "'";
    }
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

std::string shell_path(const std::string& path) {
    return shell_word((path.size() > 1 && path.front() == '-' ? "./" : "") + path);
}

void missing_list::add(const std::string& tensor, const std::string& recipe, bool needed) {
    auto at = std::find_if(by_recipe_.begin(), by_recipe_.end(), [&](const wanted& w) {
        return w.recipe == recipe && w.needed == needed;
    });
    if (at == by_recipe_.end()) at = by_recipe_.insert(at, {recipe, {}, needed});
    at->tensors.push_back(tensor);
}

std::vector<missing_recipes> missing_list::take(std::size_t operands) {
    std::vector<missing_recipes> out;
    for (wanted& w : by_recipe_) {
        if (w.tensors.size() == operands || w.tensors.size() > named_tensors) w.tensors.clear();
        const auto same = std::find_if(out.begin(), out.end(), [&](const missing_recipes& m) {
            return m.tensors == w.tensors && m.needed == w.needed;
        });
        if (same == out.end()) {
            out.push_back({{w.recipe}, w.tensors, w.needed});
        } else {
            same->recipes.push_back(w.recipe);
        }
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const auto& a, const auto& b) { return a.needed && !b.needed; });
    return out;
}

std::string command_of(const missing_recipes& m, std::span<const measured_tensor> tensors) {
    std::string command = "mx analyze";
    std::set<std::string> files;
    for (const measured_tensor& t : tensors) {
        if (files.insert(t.file).second) command += " " + shell_path(t.file);
    }
    for (const std::string& r : m.recipes) command += " -r " + shell_word(r);
    for (const std::string& t : m.tensors) command += " -t " + shell_word(exactly(t));
    return command;
}

}  // namespace mx::policy
