// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/judged_inputs.hpp"

#include <utility>

namespace mx::policy {

judged_model judge_inputs(std::span<const analysis::results_input> inputs, const basis& b) {
    measured_model m;
    for (const analysis::results_input& input : inputs) {
        if (input.content.kind != "analysis") continue;
        m.add(analysis::results_of(input.content.results, input.path), input.content.head);
    }
    for (const analysis::results_input& input : inputs) {
        if (input.content.kind != "analysis") continue;
        m.add_left_out(input.content.tail, input.content.head);
    }
    return judge_model(std::move(m), b);
}

}  // namespace mx::policy
