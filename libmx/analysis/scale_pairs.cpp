// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/scale_pairs.hpp"

#include <algorithm>

namespace mx::analysis {
namespace {

std::vector<scale_pairs> none_of(const std::vector<std::vector<std::size_t>>& groups) {
    std::vector<scale_pairs> counts;
    for (const std::vector<std::size_t>& g : groups) counts.emplace_back(g.size());
    return counts;
}

}  // namespace

void scale_pairs::merge(const scale_pairs& other) {
    blocks += other.blocks;
    for (std::size_t i = 0; i < differ.size(); ++i) differ[i] += other.differ[i];
}

class scale_pair_counter::panel_pairs final : public engine::panel_visitor {
  public:
    panel_pairs(scale_pair_counter& to, const engine::run_panel& p)
        : to_(to), panel_(p), counts_(none_of(to.groups_)) {}

    void segment(const engine::quantized_segment& s,
                 std::span<const std::size_t> members) override {
        for (std::size_t g = 0; g < counts_.size(); ++g) {
            const std::vector<std::size_t>& group = to_.groups_[g];
            std::vector<const codec::block_results*> of(group.size());
            for (std::size_t i = 0; i < members.size(); ++i) {
                const engine::run_job& j = panel_.job(members[i]);
                const auto at = std::find(group.begin(), group.end(), j.recipe) - group.begin();
                if (j.phase != 0 || at == std::ssize(group)) continue;
                of[static_cast<std::size_t>(at)] = &s.by_recipe[i].of_blocks;
            }
            if (std::find(of.begin(), of.end(), nullptr) == of.end()) compare(of, counts_[g]);
        }
    }

    void end() override {
        const std::lock_guard lock(to_.guard_);
        std::vector<scale_pairs>& to = to_.of_tensors_[panel_.tensor - panel_.batch.first];
        for (std::size_t g = 0; g < counts_.size(); ++g) to[g].merge(counts_[g]);
    }

  private:
    static void compare(const std::vector<const codec::block_results*>& of, scale_pairs& to) {
        const std::size_t blocks = of.front()->blocks;
        to.blocks += blocks;
        std::size_t pair = 0;
        for (std::size_t a = 0; a < of.size(); ++a) {
            for (std::size_t b = a + 1; b < of.size(); ++b, ++pair) {
                for (std::size_t i = 0; i < blocks; ++i) {
                    to.differ[pair] += of[a]->scale_code[i] != of[b]->scale_code[i] ? 1u : 0u;
                }
            }
        }
    }

    scale_pair_counter& to_;
    engine::run_panel panel_;
    std::vector<scale_pairs> counts_;
};

scale_pair_counter::scale_pair_counter(const std::vector<std::vector<std::size_t>>& groups)
    : groups_(groups), counts_(none_of(groups)) {}

bool scale_pair_counter::compares(const engine::run_job& j) const {
    return j.phase == 0 && std::any_of(groups_.begin(), groups_.end(), [&](const auto& g) {
               return std::find(g.begin(), g.end(), j.recipe) != g.end();
           });
}

codec::recipe_request scale_pair_counter::requested(const engine::run_job& j) const {
    return {nullptr, compares(j) ? codec::detail::codes : codec::detail::none};
}

std::optional<codec::recipe_request> scale_pair_counter::beside_counts(
    const engine::run_job& j) const {
    return codec::recipe_request{
        .wanted = compares(j) ? codec::detail::scales : codec::detail::none, .sums = false};
}

void scale_pair_counter::begin(const engine::run_batch& b) {
    of_tensors_.assign(b.tensors.size(), none_of(groups_));
}

void scale_pair_counter::serialize_tensor(const engine::run_batch&, std::size_t tensor,
                                          base::archive& with) {
    for (scale_pairs& p : of_tensors_[tensor]) {
        with.add(p.blocks);
        for (std::uint64_t& n : p.differ) with.add(n);
    }
}

void scale_pair_counter::end(const engine::run_batch&) {
    for (const std::vector<scale_pairs>& of_tensor : of_tensors_) {
        for (std::size_t g = 0; g < counts_.size(); ++g) counts_[g].merge(of_tensor[g]);
    }
}

std::unique_ptr<engine::panel_visitor> scale_pair_counter::visit(const engine::run_panel& p) {
    return std::make_unique<panel_pairs>(*this, p);
}

}  // namespace mx::analysis
