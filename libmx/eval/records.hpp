// SPDX-License-Identifier: Apache-2.0
// What an evaluation says, as records: mx.eval/1 and mx.scores/1.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libmx/eval/evaluation.hpp"
#include "libmx/eval/places.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::eval {

/// Figures of one arm over the scored tokens.
struct summary {
    std::size_t tokens = 0, windows = 0;
    double cross_entropy = 0, cross_entropy_base = 0;  ///< means, nats a token
    double delta_stderr = 0;  ///< of the mean difference of the two, by token
    double kld_mean = 0, kld_stderr = 0, kld_median = 0, kld_p99 = 0, kld_max = 0;
    std::size_t kld_max_token = 0;  ///< of the scored tokens
    double top1_agreement = 0;      ///< share of tokens with the same most probable token
    double probability_rms = 0;     ///< of the change of the token's probability
    /// Half of the 95 % interval of the mean divergence, and of the mean difference of
    /// cross-entropy, over windows as units; 0 with fewer than 4 windows.
    double kld_interval = 0, delta_interval = 0;
};
summary summary_of(const evaluation& e, const token_scores& of);

/// The quantile `q` of values by linear interpolation: index q (n - 1) of the sorted values.
double quantile(std::vector<double> values, double q);

/// One arm's description.
struct arm_description {
    std::string recipe, weights, activations, kv, attention;
    double bits_per_weight = 0;  ///< of all parameters of the model, scales included
};
arm_description description_of(const model_weights& model, const arm& a);

/// A tensor whose weights a part quantizes.
struct part_tensor {
    std::string tensor;  ///< its name in the file; experts in a stack are one tensor
    std::string dtype;
    tensor::shape shape;
    std::uint64_t elements = 0, bits = 0, stored_bits = 0;  ///< bits: under the recipe
};
/// The tensors that `part` quantizes under `a`, in the order of the forward pass.
std::vector<part_tensor> tensors_of(const model_weights& model, const arm& a,
                                    const model_part& part);
/// The embedding, and the head if it is another tensor: matrices that are in no part. `bits` are
/// those in the file.
std::vector<part_tensor> outer_matrices(const model_weights& model);

/// A part quantized alone, or left alone.
struct part_result {
    std::string recipe;
    std::string level;
    std::string part;
    double only_kld = 0, only_delta = 0, only_agreement = 0;
    double without_kld = 0, without_delta = 0;
    double all_kld = 0;  ///< everything quantized
    std::vector<part_tensor> tensors = {};
};
/// Two parts together.
struct pair_result {
    std::string recipe, first, second;
    double first_kld = 0, second_kld = 0, both_kld = 0;
};

/// A part's divergence as the gradient predicts it, beside what it is if that was measured.
struct sensitivity_result {
    std::string recipe, level, part;
    double predicted = 0;
    std::optional<double> measured;
};

/// Everything that a document says.
struct findings {
    std::string model, architecture, precision, text;
    std::optional<std::size_t> experts;  ///< of a block
    std::string source;                  ///< of the tokens: tokens, text or sample, as the options
    std::optional<std::uint64_t> seed;   ///< of a sample
    std::vector<std::string> left_out;   ///< of the file (model_weights)
    std::size_t tokens = 0, context = 0, stride = 0, parameters = 0;
    double stored_bits = 0;  ///< a weight, as the file stores the model
    std::vector<arm_description> arms;
    evaluation of;
    std::vector<part_result> parts;
    std::vector<part_tensor> kept;  ///< outer_matrices, with parts
    std::vector<pair_result> pairs;
    std::vector<sensitivity_result> sensitivity;
    std::vector<std::string> pieces;  ///< of the scored tokens' ids, to be shown; may be empty
    bool per_token = false;
};

/// The document of mx.eval/1 without its tables, which pages::eval_sections makes of it. `head`:
/// that of every document of mx (pages::document_head).
report::document document_of(const findings& f, report::record head);
report::document_schema eval_schema();

/// mx.scores/1: perplexities by recipe, for the arms that are one block recipe, and "stored".
report::document scores_of(const findings& f);
report::document_schema scores_schema();

}  // namespace mx::eval
