// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/tensor_remarks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/pages/views/recipe_words.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

// Bits per element, over those of full blocks, from which on short blocks are worth a word.
constexpr double short_block_cost = 1.1;

struct nan_scales {
    std::string recipe, first;
    std::uint64_t tensors = 0, poisoned = 0, elements = 0;
};

}  // namespace

std::vector<std::string> nan_scale_notes(const std::vector<const analysis::result*>& results) {
    std::vector<nan_scales> all;
    for (const analysis::result* r : results) {
        if (r->poisoned == 0 || r->nan != 0 || r->inf != 0) continue;
        auto at = std::ranges::find(all, r->under->name, &nan_scales::recipe);
        if (at == all.end()) at = all.insert(at, {r->under->name, r->of->tensor});
        ++at->tensors;
        at->poisoned += r->poisoned;
        at->elements += r->elements;
    }
    std::vector<std::string> notes;
    for (const nan_scales& n : all) {
        notes.push_back(fmt::format(
            "- {} turns {} of {} in {} into NaN ({}{}): the block maximum is so near the largest "
            "float32 that the scale overflows. They are in no figure.",
            n.recipe, report::grouped(static_cast<std::int64_t>(n.poisoned)),
            report::plural(n.elements, "element"), report::plural(n.tensors, "tensor"),
            base::printable(n.first), n.tensors == 1 ? "" : ", ..."));
    }
    return notes;
}

std::string short_block_note(const std::vector<const analysis::result*>& results) {
    std::set<std::pair<std::string_view, std::string_view>> seen;
    std::uint64_t tensors = 0;
    const analysis::result* dearest = nullptr;
    for (const analysis::result* r : results) {
        if (!seen.emplace(r->of->file, r->of->tensor).second) continue;
        const codec::recipe& recipe = r->under->recipe;
        const auto of_block = static_cast<std::uint64_t>(recipe.block.rows) *
                              static_cast<std::uint64_t>(recipe.block.cols);
        const bool is_short = r->bits_per_element > short_block_cost * bits_per_element(recipe) &&
                              r->elements >= of_block;
        if (!is_short) continue;
        ++tensors;
        if (dearest == nullptr || r->bits_per_element > dearest->bits_per_element) dearest = r;
    }
    if (dearest == nullptr) return {};
    return fmt::format(
        "- {} {} an axis shorter than the block, so scales need more bits: {} takes {:.2f} bits "
        "per element under {}. axis=flat uses blocks of the flattened tensor instead.",
        report::plural(tensors, "tensor"), tensors == 1 ? "has" : "have",
        base::printable(dearest->of->tensor), dearest->bits_per_element, dearest->under->name);
}

std::vector<std::string> tensor_remarks(const std::vector<const analysis::result*>& results) {
    std::vector<std::string> notes = nan_scale_notes(results);
    if (std::string note = short_block_note(results); !note.empty()) {
        notes.push_back(std::move(note));
    }
    return notes;
}

}  // namespace mx::pages
