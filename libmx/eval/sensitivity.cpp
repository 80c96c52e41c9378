// SPDX-License-Identifier: Apache-2.0
#include "libmx/eval/sensitivity.hpp"

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

void gradients_of_outputs(const model_weights& model, lab::machine& on,
                          const evaluation_request& request,
                          const std::function<void(std::string_view layer, std::size_t rows,
                                                   std::size_t cols, const float* dy)>& visit) {
    const bool neighbours = model.shape().pairs == llm::rope_pairs::neighbours;
    const std::size_t size = model.shape().head_size;
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
        }
        const std::uint32_t* const ids = request.tokens.data() + w.begin;
        net->forward(on, plain, values, ids, ids + 1, rows, 0, 1);
        const lab::layer_observer observer = [&](const lab::layer_value& v) {
            const auto at = places.find(v.layer);
            if (v.name != "dy" || at == places.end()) return;
            const role what = at->second.what;
            const bool turned = neighbours && (what == role::query || what == role::key);
            dy.resize(v.rows * v.cols);
            for (std::size_t r = 0; r < v.rows; ++r) {
                for (std::size_t c = 0; c < v.cols; ++c) {
                    const std::size_t to = turned ? lab::row_among_neighbours(c, size) : c;
                    // The network's loss is the mean.
                    dy[r * v.cols + to] = v.data[r * v.cols + c] * static_cast<float>(rows);
                }
            }
            visit(model.layer_name(at->second), v.rows, v.cols, dy.data());
        };
        net->backward(on, plain, values, gradients, &observer);
    }
}

output_moments gradient_moments(const model_weights& model, lab::machine& on,
                                const evaluation_request& request) {
    output_moments all;
    gradients_of_outputs(
        model, on, request,
        [&](std::string_view layer, std::size_t rows, std::size_t cols, const float* dy) {
            std::vector<double>& sums = all[std::string(layer)];
            sums.resize(cols);
            for (std::size_t r = 0; r < rows; ++r) {
                for (std::size_t c = 0; c < cols; ++c) {
                    const auto g = static_cast<double>(dy[r * cols + c]);
                    sums[c] += g * g;
                }
            }
        });
    double rows = 0;
    for (const window& w : request.windows) rows += static_cast<double>(w.last);
    for (auto& [layer, sums] : all) {
        for (double& s : sums) s /= rows;
    }
    return all;
}

double predicted_divergence(const output_moments& moments, const output_errors& errors,
                            std::size_t rows) {
    double sum = 0;
    for (const auto& [layer, squares] : errors) {
        const std::vector<double>& of_gradient = moments.at(layer);
        for (std::size_t c = 0; c < squares.size(); ++c) sum += squares[c] * of_gradient[c];
    }
    return 0.5 * sum / static_cast<double>(rows);
}

}  // namespace mx::eval
