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
#include "libmx/report/document.hpp"

namespace mx::pages {

/// Gathers remarks from results.
class tensor_remarks {
  public:
    /// The results of a tensor must be consecutive.
    void see(const analysis::result& r);

    /// An item per recipe under which tensors without NaN and Inf have poisoned elements (a block
    /// maximum is so close to the largest float32 that the scale overflows), and one for the
    /// tensors whose blocks are so short that scales weigh more. A tensor counts under its first
    /// result.
    report::notes notes() const;

  private:
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
