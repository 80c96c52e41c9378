// SPDX-License-Identifier: Apache-2.0
// The verdict of a policy on any recipe that a tensor was measured under, chosen or not.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libmx/base/text_tables.hpp"
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

    /// The index of a tensor in the model, none if it was not measured.
    std::optional<std::size_t> find(const std::string& file, const std::string& tensor) const;

    /// None if the tensor keeps its stored precision whatever the recipe, and for a recipe that it
    /// was not measured under in whole blocks. A recipe that the policy does not name needs
    /// evaluation at best.
    std::optional<recipe_verdict> of(std::size_t tensor, std::string_view recipe);

  private:
    struct place {
        const class_judgement* in = nullptr;
        std::size_t operand = 0;
    };
    const judged_model& model_;
    measurements known_;
    std::vector<place> places_;          // by tensor
    base::text_map<std::size_t> index_;  // by file and name
};

/// "loses 96.9 % of its elements to zero (limit 20 %)".
std::string describe(const reached_limit& l);

}  // namespace mx::policy
