// SPDX-License-Identifier: Apache-2.0
// The choices of a plan in units of loss: per place of a language model, the divergence that mx
// eval measured with that place quantized alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libmx/analysis/results_input.hpp"
#include "libmx/studies/plan/candidates.hpp"

namespace mx::plan {

/// What evaluations say about adding divergences up.
struct additivity {
    struct whole {
        std::string recipe;
        double sum = 0;       ///< of the parts quantized alone, nats a token
        double together = 0;  ///< all of them quantized
    };
    std::vector<whole> recipes;
    std::size_t pairs = 0;  ///< of parts that were quantized together
    /// Over the pairs: the divergence of both over the sum of each alone.
    double least_ratio = 0, most_ratio = 0;
};

/// Parts that get one recipe.
struct divergence_place {
    std::vector<std::string> layers;  ///< patterns for --at of mx eval
};

struct measured_divergences {
    /// Tensors in the order of the model, `groups` the places. The error of an option is in nats a
    /// token; it is on the first tensor of a part, and the others have none. Signals are 0.
    candidates from;
    std::vector<divergence_place> places;  ///< by group
    additivity adds_up;
    report::record model;  ///< the head of the first evaluation
    std::string level;     ///< of --each
};

struct divergence_request {
    std::vector<std::string> recipes;  ///< as --recipe, of the weights; none: all
    bool keep = false;                 ///< offer `stored` too
    bool separate = false;             ///< parts of a fused matrix may differ
};

/// Gathers the parts of evaluations of one model on the same tokens (mx.eval/1). Throws
/// base::error: input for other documents, without parts, or whose figures cannot be; usage for
/// evaluations that differ in more than their recipes, and for recipes that cannot be planned with.
measured_divergences gather_divergences(const std::vector<analysis::results_input>& inputs,
                                        const divergence_request& request);

}  // namespace mx::plan
