// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/missing.hpp"

#include <algorithm>

namespace mx::policy {
namespace {

// A command names at most this many tensors; for more it measures all.
constexpr std::size_t named_tensors = 4;

// Whether two tensors were measured by the same command.
bool alike(const std::shared_ptr<const report::given_command>& a,
           const std::shared_ptr<const report::given_command>& b) {
    return a == b || (a && b && a->line == b->line);
}

// A group has the name of no tensor.
bool of_groups(const report::given_command* by) {
    return by != nullptr && std::any_of(by->line.options.begin(), by->line.options.end(),
                                        [](const auto& o) { return o.name == "group"; });
}

}  // namespace

void missing_list::add(const measured_tensor& tensor, const std::string& recipe, bool needed) {
    auto at = std::find_if(by_recipe_.begin(), by_recipe_.end(), [&](const missing_recipe& w) {
        return w.recipe == recipe && w.needed == needed && alike(w.by, tensor.by);
    });
    if (at == by_recipe_.end()) at = by_recipe_.insert(at, {recipe, {}, needed, tensor.by});
    at->tensors.push_back(tensor.name);
}

std::vector<missing_recipes> missing_list::take(std::size_t operands) {
    std::vector<missing_recipes> out;
    for (missing_recipe& w : by_recipe_) {
        if (w.tensors.size() == operands || w.tensors.size() > named_tensors ||
            of_groups(w.by.get())) {
            w.tensors.clear();
        }
        const auto same = std::find_if(out.begin(), out.end(), [&](const missing_recipes& m) {
            return m.tensors == w.tensors && m.needed == w.needed && alike(m.by, w.by);
        });
        if (same == out.end()) {
            out.push_back({{w.recipe}, w.tensors, w.needed, w.by});
        } else {
            same->recipes.push_back(w.recipe);
        }
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const auto& a, const auto& b) { return a.needed && !b.needed; });
    return out;
}

}  // namespace mx::policy
