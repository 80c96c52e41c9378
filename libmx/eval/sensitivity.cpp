// SPDX-License-Identifier: Apache-2.0
#include "libmx/eval/sensitivity.hpp"

#include <map>
#include <memory>
#include <utility>

#include "libmx/base/parallel.hpp"
#include "libmx/lab/language_model.hpp"

namespace mx::eval {
namespace {

constexpr std::string_view ending = ".weight";

// Linear layers by their names in the network.
std::map<std::string, place, std::less<>> places_of(const model_weights& model) {
    std::map<std::string, place, std::less<>> all;
    for (std::size_t i = 0; i < model.shape().depth; ++i) {
        for (const place& p : model.linears(i)) {
            std::string name = llm::hugging_face_name(*model.shape().kind, p);
            name.resize(name.size() - ending.size());
            all.emplace(std::move(name), p);
        }
    }
    return all;
}

}  // namespace

void gradients_of_outputs(const model_weights& model, lab::execution_context& on,
                          const evaluation_request& request,
                          const std::function<void(const layer_gradient& g)>& visit) {
    const bool neighbours = model.shape().pairs == llm::rope_pairs::neighbours;
    const auto places = places_of(model);
    std::unique_ptr<lab::language_network> net;
    std::vector<float> values, gradients, dy;
    const lab::precision plain;
    for (std::size_t i = 0; i < request.windows.size(); ++i) {
        base::stop_if(request.cancel);
        if (request.progress) request.progress(i, request.windows.size());
        const window& w = request.windows[i];
        const std::size_t rows = w.last;  // those after it predict nothing, and nothing sees them
        if (!net || net->shape().context != rows) {
            net = std::make_unique<lab::language_network>(
                lab::language_shape_of(model.shape(), rows, model.path()));
            if (values.empty()) values = net->values_of(model);
            gradients.resize(values.size());
        }
        const std::uint32_t* const ids = request.tokens.data() + w.begin;
        net->forward(on, plain, values, ids, ids + 1, rows, 0, 1);
        const lab::layer_observer observer = [&](const lab::layer_value& v) {
            const auto at = places.find(v.layer);
            if (v.linear == nullptr || at == places.end()) return;
            dy.assign(v.data, v.data + v.rows * v.cols);
            for (float& g : dy) g *= static_cast<float>(rows);  // the network's loss is the mean
            const role what = at->second.what;
            const bool turned = neighbours && (what == role::query || what == role::key);
            visit({model.layer_name(at->second), w, i, *v.linear, v.input, dy.data(), turned});
        };
        net->backward(on, plain, values, gradients, &observer);
    }
}

std::vector<float> in_order_of_file(const layer_gradient& g, std::size_t head_size) {
    const std::size_t rows = g.values.tokens, cols = g.values.out;
    std::vector<float> to(g.dy, g.dy + rows * cols);
    for (std::size_t c = 0; g.neighbours && c < cols; ++c) {
        const std::size_t at = lab::row_among_neighbours(c, head_size);
        for (std::size_t r = 0; r < rows; ++r) to[r * cols + at] = g.dy[r * cols + c];
    }
    return to;
}

std::vector<double> predicted_divergences(const model_weights& model, lab::execution_context& on,
                                          const std::vector<arm>& arms,
                                          const evaluation_request& request) {
    std::vector<double> sums(arms.size());
    lab::layer_buffers buffers;
    std::vector<float> exact, other;
    const lab::precision plain;
    std::size_t tokens = 0;
    for (const window& w : request.windows) tokens += w.last;
    gradients_of_outputs(model, on, request, [&](const layer_gradient& g) {
        const std::size_t count = g.values.tokens * g.values.out;
        exact.resize(count);
        other.resize(count);
        lab::linear_forward({on, plain, buffers}, g.values, g.x, exact.data());
        for (std::size_t i = 0; i < arms.size(); ++i) {
            const lab::precision& how = arms[i].how.of(g.layer);
            if (!how.operands[0][0].recipe && !how.operands[0][1].recipe) continue;
            lab::linear_forward({on, how, buffers, 0, g.number}, g.values, g.x, other.data());
            for (std::size_t r = 0; r < g.values.tokens; ++r) {
                double effect = 0;  // of the token's errors on the loss, to first order
                for (std::size_t k = r * g.values.out; k < (r + 1) * g.values.out; ++k) {
                    const double error =
                        static_cast<double>(other[k]) - static_cast<double>(exact[k]);
                    effect += error * static_cast<double>(g.dy[k]);
                }
                sums[i] += effect * effect;
            }
        }
    });
    for (double& s : sums) s /= 2 * static_cast<double>(tokens);
    return sums;
}

}  // namespace mx::eval
