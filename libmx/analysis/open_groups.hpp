// SPDX-License-Identifier: Apache-2.0
// Sums of the tensors that share a record (`--group`), held from the first tensor of a group to its
// last: memory depends on the number of incomplete groups, not of tensors.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "libmx/analysis/groups.hpp"

namespace mx::analysis {

/// `Sums` is default-constructed; every group has `variants` of them.
template <typename Sums>
class open_groups {
  public:
    open_groups(grouping of, std::size_t variants)
        : of_(std::move(of)), variants_(variants), open_(of_.groups.size()) {}

    /// The sums of the tensor's group.
    Sums& sums_of(std::size_t tensor, std::size_t variant) {
        return opened(of_.group_of[tensor]).sums[variant];
    }
    /// The tensor is complete. Calls take(group, sums) if it is the last of its group.
    template <typename Take>
    void complete(std::size_t tensor, Take&& take) {
        const std::size_t group = of_.group_of[tensor];
        if (++opened(group).tensors == of_.groups[group].tensors) close(group, take);
    }
    /// Calls take(group, sums) for the incomplete groups, in order.
    template <typename Take>
    void close_all(Take&& take) {
        for (std::size_t group = 0; group < open_.size(); ++group) {
            if (open_[group]) close(group, take);
        }
    }

    std::size_t size() const { return open_.size(); }
    const grouping::group& group(std::size_t index) const { return of_.groups[index]; }

  private:
    struct group_at_work {
        std::vector<Sums> sums;
        std::size_t tensors = 0;  // that are complete
    };

    group_at_work& opened(std::size_t group) {
        if (!open_[group]) {
            open_[group] = std::make_unique<group_at_work>();
            open_[group]->sums.resize(variants_);
        }
        return *open_[group];
    }
    template <typename Take>
    void close(std::size_t group, Take& take) {
        take(group, std::move(open_[group]->sums));
        open_[group] = nullptr;
    }

    grouping of_;
    std::size_t variants_;
    std::vector<std::unique_ptr<group_at_work>> open_;  // by group; null: not begun, or closed
};

}  // namespace mx::analysis
