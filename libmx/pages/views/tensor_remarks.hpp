// SPDX-License-Identifier: Apache-2.0
// What the figures of tensors do not show: blocks that are left out of them, and blocks that are
// mostly scale.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libmx/analysis/result.hpp"

namespace mx::pages {

/// Gathers them from results.
class tensor_remarks {
  public:
    /// The results of a tensor follow one another.
    void see(const analysis::result& r);

    /// As lines of a list.
    std::vector<std::string> notes() const;

  private:
    // A sentence per recipe under which tensors without NaN and Inf have poisoned elements: their
    // block maximum is so near the largest float32 that the scale overflows.
    std::vector<std::string> nan_scale_notes() const;
    // Says which tensors have blocks so short that scales weigh more, and what they cost; empty
    // where none has. A tensor counts under its first result.
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
