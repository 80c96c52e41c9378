// SPDX-License-Identifier: Apache-2.0
#include "libmx/experiments/operand_error.hpp"

#include <algorithm>
#include <cmath>

#include "libmx/lab/operand.hpp"

namespace mx::experiments {
namespace {

constexpr std::string_view weight_suffix = ".weight", x_suffix = ".x", dy_suffix = ".dy";

std::string_view suffix_of(operand kind) {
    switch (kind) {
        case operand::activations:
            return x_suffix;
        case operand::gradients:
            return dy_suffix;
        case operand::none:
        case operand::weights:
            break;
    }
    return weight_suffix;
}

}  // namespace

operand_error error_of(lab::execution_context& on, const lab::tensor_file& dump,
                       std::span<const lab::layer_name> layers, operand kind,
                       const lab::operand_rule& rule, std::uint64_t seed) {
    operand_error sum;
    double tensors = 0, all_squares = 0, all_errors = 0;
    lab::array buffer;
    for (const std::string& name : dump.names()) {
        if (!name.ends_with(weight_suffix)) continue;
        const std::string layer = name.substr(0, name.size() - weight_suffix.size());
        const auto part = [&](std::string_view suffix) { return layer + std::string(suffix); };
        if (!dump.has(part(x_suffix)) || !dump.has(part(dy_suffix))) continue;
        const auto known = std::ranges::find(layers, layer, &lab::layer_name::name);
        if (known != layers.end() && known->kept) continue;
        const std::string tensor = part(suffix_of(kind));
        const std::vector<float> x = dump.read(tensor);
        if (x.empty()) continue;
        const auto cols = static_cast<std::size_t>(dump.info(tensor).shape.back());
        const lab::matrix_view m{
            x.data(), x.size() / cols, cols, {seed, base::tensor_id("experiments." + tensor)}};
        const transform::rotation rotate =
            rule.recipe ? rule.recipe->rotation() : transform::rotation{};
        const float* const q = lab::quantized_copy(on, rule, rotate, m, lab::axis::last, buffer);
        double squares = 0, errors = 0, product = 0, amax = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const auto value = static_cast<double>(x[i]), becomes = static_cast<double>(q[i]);
            squares += value * value;
            errors += (becomes - value) * (becomes - value);
            product += becomes * value;
            amax = std::max(amax, std::abs(value));
        }
        if (!std::isfinite(squares) || !std::isfinite(errors)) {
            dump.fail("has values that are not finite", tensor);
        }
        if (!(squares > 0)) continue;
        tensors += 1;
        sum.rmse_over_rms += std::sqrt(errors / squares);
        sum.rmse_over_amax += std::sqrt(errors / static_cast<double>(x.size())) / amax;
        sum.gain += product / squares;
        all_squares += squares;
        all_errors += errors;
    }
    if (!(tensors > 0)) dump.fail("has no linear layer with weights, inputs and gradients");
    return {sum.rmse_over_rms / tensors, sum.rmse_over_amax / tensors, sum.gain / tensors,
            std::sqrt(all_errors / all_squares)};
}

}  // namespace mx::experiments
