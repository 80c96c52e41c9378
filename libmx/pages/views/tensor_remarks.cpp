// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/tensor_remarks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "libmx/base/status.hpp"
#include "libmx/pages/views/recipe_words.hpp"
#include "libmx/report/cells.hpp"

namespace mx::pages {
namespace {

// Bits per element relative to full blocks from which on short blocks are reported.
constexpr double short_block_cost = 1.1;

}  // namespace

void tensor_remarks::see(const analysis::result& r) {
    if (r.poisoned != 0 && r.nan == 0 && r.inf == 0) {
        auto at = std::ranges::find(nan_scales_, r.under->name, &nan_scales::recipe);
        if (at == nan_scales_.end()) at = nan_scales_.insert(at, {r.under->name, r.of->tensor});
        ++at->tensors;
        at->poisoned += r.poisoned;
        at->elements += r.elements;
    }
    if (last_ && last_->tensor == r.of->tensor && last_->file == r.of->file) return;
    last_ = r.of;
    const codec::recipe& recipe = r.under->recipe;
    const auto of_block = static_cast<std::uint64_t>(recipe.block.rows) *
                          static_cast<std::uint64_t>(recipe.block.cols);
    const bool is_short = r.bits_per_element > short_block_cost * codec::bits_per_element(recipe) &&
                          r.elements >= of_block;
    if (!is_short) return;
    ++short_tensors_;
    if (!dearest_ || r.bits_per_element > dearest_->bits_per_element) dearest_ = r;
}

report::notes tensor_remarks::notes() const {
    report::notes notes;
    for (const nan_scales& n : nan_scales_) {
        notes.push_back(report::item(fmt::format(
            "{} turns {} of {} in {} into NaN ({}{}): the block maximum is so near the largest "
            "float32 that the scale overflows. They are in no figure.",
            n.recipe, report::grouped(static_cast<std::int64_t>(n.poisoned)),
            report::plural(n.elements, "element"), report::plural(n.tensors, "tensor"),
            base::printable(n.first), n.tensors == 1 ? "" : ", ...")));
    }
    if (!dearest_) return notes;
    notes.push_back(report::item(fmt::format(
        "{} {} an axis shorter than the block, so scales need more bits: {} takes {:.2f} bits "
        "per element under {}.",
        report::plural(short_tensors_, "tensor"), short_tensors_ == 1 ? "has" : "have",
        base::printable(dearest_->of->tensor), dearest_->bits_per_element, dearest_->under->name)));
    return notes;
}

}  // namespace mx::pages
