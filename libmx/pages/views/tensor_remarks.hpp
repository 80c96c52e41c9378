// SPDX-License-Identifier: Apache-2.0
// Remarks on what the figures of tensors do not show: blocks excluded from them, and blocks that
// consist mostly of scale.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libmx/analysis/result.hpp"

namespace mx::pages {

/// Gathers remarks from results.
class tensor_remarks {
  public:
    /// The results of a tensor must be consecutive.
    void see(const analysis::result& r);

    /// The remarks as list items.
    std::vector<std::string> notes() const;

  private:
    // A sentence per recipe under which tensors without NaN and Inf have poisoned elements: a block
    // maximum is so close to the largest float32 that the scale overflows.
    std::vector<std::string> nan_scale_notes() const;
    // Names the tensors whose blocks are so short that scales weigh more, and their cost; empty if
    // there are none. A tensor counts under its first result.
    std::string short_block_note() const;

    struct nan_scales {
        std::string recipe, first;
        std::uint64_t tensors = 0, poisoned = 0, elements = 0;
    };
    std::vector<nan_scales> nan_scales_;  // by recipe
    std::shared_ptr<const analysis::tensor_identity> last_;
    std::uint64_t short_tensors_ = 0;
    std::optional<analysis::result> dearest_;
};

}  // namespace mx::pages
