// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/compared_groups.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "libmx/report/members.hpp"

namespace mx::diff {
namespace {

// The figure that is largest for the worst member.
double difference_of(const value_figures& v) {
    const double changed_zeros = v.changed > 0 ? std::numeric_limits<double>::infinity() : 0.0;
    return nrmse_of(v).value_or(changed_zeros);
}

std::vector<worst_member> worst_of(const compared_under& c) {
    std::vector<worst_member> worst;
    for (std::size_t k = 0; k < c.figures.values.size(); ++k) {
        worst.push_back({c.of->tensor, c.figures.values[k], c.figures.codes.moves[k]});
    }
    return worst;
}

void take_member(compared_under& group, compared_under c) {
    ++group.members;
    group.figures.merge(c.figures);
    group.tensor_scales.clear();
    for (std::size_t d = 0; d < c.dtypes.size(); ++d) {
        if (group.dtypes[d] != c.dtypes[d]) group.dtypes[d] = {};
    }
    const std::vector<worst_member> candidates = worst_of(c);
    for (std::size_t k = 0; k < candidates.size(); ++k) {
        const bool worse =
            difference_of(candidates[k].values) > difference_of(group.worst[k].values);
        if (worse) group.worst[k] = candidates[k];
    }
}

struct worst_of_pair {
    const compared_under& c;
    const worst_member& w;
};
constexpr std::array worst_members = std::to_array<report::declared<worst_of_pair>>({
    {"members", "ordinal", "tensors that share the record; with --group",
     [](auto& x) { return x.c.members; }},
    {"worst_member", "string",
     "the one of them with the largest nrmse, before all others one of zeros that changed",
     [](auto& x) { return x.w.tensor; }},
    {"worst_member_nrmse", "amount?", "", [](auto& x) { return nrmse_of(x.w.values); }},
    {"worst_member_codes_moved", "share?", "of the same tensor",
     [](auto& x) { return report::share(x.w.moves.codes_moved, x.w.moves.elements); }},
});

}  // namespace

compared_under::compared_under(const matched_tensor& t, std::string_view role,
                               std::size_t recipe_index)
    : of(std::make_shared<analysis::tensor_identity>(analysis::identity_of(t.info(), role))),
      recipe(recipe_index) {
    for (const engine::tensor_ref& in : t.in) {
        dtypes.emplace_back(std::string(tensor::row_of(in.info().type).name));
    }
}

void add_worst(report::record& r, const compared_under& c, std::size_t pair) {
    report::append(r, worst_members, {c, c.worst[pair]});
}
void declare_worst(report::member_list& to) { to.add_of_some(worst_members); }

compared_groups::compared_groups(analysis::grouping of, std::size_t recipes)
    : of_(std::move(of)), recipes_(recipes), sums_(of_.groups.size() * recipes) {}

void compared_groups::add(std::size_t tensor, compared_under c) {
    compared_under& sum = sums_[of_.group_of[tensor] * recipes_ + c.recipe];
    if (sum.of) {
        take_member(sum, std::move(c));
        return;
    }
    sum = std::move(c);
    sum.worst = worst_of(sum);
}

std::vector<compared_under> compared_groups::take() {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
        if (sums_[i].of) sums_[i].of = of_.groups[i / recipes_].of;
    }
    std::erase_if(sums_, [](const compared_under& c) { return !c.of; });
    return std::move(sums_);
}

}  // namespace mx::diff
