// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/judged_inputs.hpp"

#include <utility>
#include <vector>

#include "libmx/policy/results.hpp"

namespace mx::policy {

judged_model judge_inputs(std::span<const analysis::results_input> inputs, const basis& b) {
    std::vector<measured_tensor> tensors;
    for (const analysis::results_input& input : inputs) {
        if (input.content.kind != "analysis") continue;
        add_results(analysis::results_of(input.content.results, input.path), input.content.head,
                    tensors);
    }
    for (const analysis::results_input& input : inputs) {
        if (input.content.kind != "analysis") continue;
        add_left_out(input.content.tail, input.content.head, tensors);
    }
    return judge_model(std::move(tensors), b);
}

}  // namespace mx::policy
