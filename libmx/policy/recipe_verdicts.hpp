// SPDX-License-Identifier: Apache-2.0
// The verdict of a policy on any recipe that a tensor was measured under, chosen or not.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "libmx/policy/judged_model.hpp"
#include "libmx/policy/measurements.hpp"

namespace mx::policy {

struct recipe_verdict {
    verdict is = verdict::no;
    bool candidate = false;            ///< the policy names the recipe for the tensor's role
    std::optional<reached_limit> why;  ///< the limit that was reached
};

/// Points into the model, which must outlive it.
class recipe_verdicts {
  public:
    explicit recipe_verdicts(const judged_model& m);

    /// `column`: of the recipe in the model's table. None if the tensor keeps its stored precision
    /// whatever the recipe, and for a recipe that it was not measured under in whole blocks. A
    /// recipe that the policy does not name needs evaluation at best.
    std::optional<recipe_verdict> of(std::size_t tensor, std::size_t column);

  private:
    struct place {
        const class_judgement* in = nullptr;
        std::size_t operand = 0;
    };
    const judged_model& model_;
    measurements known_;
    std::vector<place> places_;  // by tensor
};

/// "loses 96.9 % of its elements to zero (limit 20 %)".
std::string describe(const reached_limit& l);

}  // namespace mx::policy
