// SPDX-License-Identifier: Apache-2.0
// Gradients of outputs against those of torch, what they predict, and probabilities of attention.
#include "libmx/eval/sensitivity.hpp"

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "libmx/base/statistics.hpp"
#include "libmx/eval/places.hpp"
#include "libmx/lab/language_model.hpp"
#include "libmx/lab/tensor_file.hpp"
#include "tests/catch.hpp"

namespace mx::eval {
namespace {

std::string vectors_of(const std::string& name) {
    return std::string(MX_SOURCE_DIR) + "/datasets/vectors/eval/" + name;
}

evaluation_request windows_of_vectors(const std::string& name, std::size_t context) {
    const std::vector<std::byte> bytes =
        lab::tensor_file(vectors_of(name) + "/reference.safetensors")
            .bytes("ids", tensor::dtype::i32);
    evaluation_request r;
    r.tokens.resize(bytes.size() / sizeof(std::uint32_t));
    std::memcpy(r.tokens.data(), bytes.data(), bytes.size());
    r.windows = windows_of(r.tokens.size(), context, context);
    return r;
}

}  // namespace

TEST_CASE("gradients of outputs add up to those of biases by torch") {
    const model_weights model(vectors_of("qwen2"));
    const evaluation_request r = windows_of_vectors("qwen2", 40);
    const double tokens = static_cast<double>(r.tokens.size() - 1);
    lab::execution_context on(1);
    std::map<std::string, std::vector<double>> sums;
    gradients_of_outputs(model, on, r, [&](const layer_gradient& g) {
        std::vector<double>& to = sums[g.layer];
        to.resize(g.values.out);
        for (std::size_t i = 0; i < g.values.tokens * g.values.out; ++i) {
            to[i % g.values.out] += static_cast<double>(g.dy[i]);
        }
    });
    CHECK(sums.size() == 14);
    const lab::tensor_file known(vectors_of("qwen2") + "/gradients.safetensors");
    for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
        const std::string layer = std::string("model.layers.0.self_attn.") + name;
        CAPTURE(layer);
        const std::vector<float> exact = known.read(layer + ".bias");
        double wrong = 0, all = 0;
        for (std::size_t i = 0; i < exact.size(); ++i) {
            const auto x = static_cast<double>(exact[i]);
            wrong += std::pow(sums.at(layer)[i] / tokens - x, 2);
            all += x * x;
        }
        CHECK(std::sqrt(wrong / all) < 2e-5);
    }
}

TEST_CASE("gradients of outputs are in the order of the file's rows, and of every window") {
    const model_weights plain(vectors_of("llama"));
    const model_weights gguf(vectors_of("llama-gguf") + "/model.gguf");
    lab::execution_context on(1), two(2);
    // Windows of 17, 17 and 6 tokens; the last row of the last one predicts nothing.
    const evaluation_request r = windows_of_vectors("llama", 17);
    const std::size_t size = plain.shape().head_size;
    using found = std::map<std::string, std::vector<float>>;
    const auto gradients = [&](const model_weights& model, lab::execution_context& with) {
        found all;
        gradients_of_outputs(model, with, r, [&](const layer_gradient& g) {
            CHECK(g.values.tokens == (g.number == 2 ? 5u : 17u));
            const std::vector<float> dy = in_order_of_file(g, size);
            std::vector<float>& to = all[g.layer];
            to.insert(to.end(), dy.begin(), dy.end());
        });
        return all;
    };
    const found a = gradients(plain, on), b = gradients(gguf, two);
    REQUIRE(a.size() == 14);
    REQUIRE(b.size() == 14);
    for (std::size_t layer = 0; layer < 2; ++layer) {
        for (const place& p : plain.linears(layer)) {
            const std::vector<float>& own = a.at(plain.layer_name(p));
            const std::vector<float>& other = b.at(gguf.layer_name(p));
            const auto out = static_cast<std::size_t>(plain.extents(p)[0]);
            const bool turned = p.what == role::query || p.what == role::key;
            REQUIRE(own.size() == (17 + 17 + 5) * out);
            REQUIRE(other.size() == own.size());
            bool same = true;
            for (std::size_t i = 0; i < own.size(); ++i) {
                const std::size_t c = i % out;
                same = same &&
                       own[i] == other[i - c + (turned ? lab::row_among_neighbours(c, size) : c)];
            }
            CHECK(same);
        }
    }
}

TEST_CASE("probabilities of attention are shown by head, and are those of the tokens before") {
    const model_weights model(vectors_of("mistral"));  // a token attends to 9
    const std::size_t heads = model.shape().heads;
    evaluation_request r = windows_of_vectors("llama", 24);
    std::size_t shown = 0;
    r.observer = [&](std::string_view, std::string_view name, std::size_t rows, std::size_t cols,
                     const float* values) {
        if (name != "p") return;
        ++shown;
        CHECK(cols == (shown % 2 == 1 ? 24u : 16u));
        REQUIRE(rows == heads * cols);
        for (std::size_t i = 0; i < rows; ++i) {
            const std::size_t token = i % cols;
            double sum = 0;
            for (std::size_t k = 0; k < cols; ++k) {
                const auto p = static_cast<double>(values[i * cols + k]);
                CHECK((p > 0) == (k <= token && k + 9 > token));
                sum += p;
            }
            CHECK(std::abs(sum - 1) < 1e-6);
        }
    };
    lab::execution_context on(2);
    evaluate(model, on, {}, r);
    CHECK(shown == 0);
    r.probabilities = true;
    evaluate(model, on, {}, r);
    CHECK(shown == 2 * model.shape().depth);
}

TEST_CASE("the gradient predicts the divergences of small errors") {
    const std::string name = GENERATE("llama", "qwen3moe", "mixtral");
    CAPTURE(name);
    const model_weights model(vectors_of(name));
    lab::execution_context on(1);
    const evaluation_request r = windows_of_vectors(name, 40);
    arm how;
    how.settings = settings_of_recipe("mxfp8");
    how.how = lab::precision_of(how.settings, layers_of(model));
    std::vector<arm> alone;
    for (const model_part& p : parts_of(model, level::layer, how)) alone.push_back(only(how, {&p}));
    REQUIRE(alone.size() == 14);  // experts of a layer are one part
    const std::vector<double> predicted = predicted_divergences(model, on, alone, r);
    const evaluation direct = evaluate(model, on, alone, r);
    std::vector<double> measured;
    double sum_predicted = 0, sum_measured = 0;
    for (std::size_t i = 0; i < alone.size(); ++i) {
        double sum = 0;
        for (const double d : direct.arms[i].divergence) sum += d;
        measured.push_back(sum / static_cast<double>(direct.arms[i].divergence.size()));
        sum_predicted += predicted[i];
        sum_measured += measured[i];
    }
    CHECK(base::spearman(predicted, measured).value_or(0) > 0.6);
    // Experts: choices that errors change are not predicted.
    CHECK(sum_predicted > sum_measured / (name == "llama" ? 2 : 5));
    CHECK(sum_predicted < sum_measured * 2);
    // Everything is the sum of its parts.
    const double whole = predicted_divergences(model, on, {how}, r).front();
    CHECK(std::abs(whole / sum_predicted - 1) < 1e-12);
}

}  // namespace mx::eval
