// SPDX-License-Identifier: Apache-2.0
// Gradients of outputs against those of torch, and what they predict.
#include "libmx/eval/sensitivity.hpp"

#include <cmath>
#include <cstring>
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
    lab::machine on(1);
    std::map<std::string, std::vector<double>> sums;
    gradients_of_outputs(
        model, on, r,
        [&](std::string_view layer, std::size_t rows, std::size_t cols, const float* dy) {
            std::vector<double>& to = sums[std::string(layer)];
            to.resize(cols);
            for (std::size_t i = 0; i < rows * cols; ++i) {
                to[i % cols] += static_cast<double>(dy[i]);
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
    lab::machine on(1), two(2);
    // Windows of 17, 17 and 6 tokens; the last row of the last one predicts nothing.
    const evaluation_request r = windows_of_vectors("llama", 17);
    const output_moments a = gradient_moments(plain, on, r), b = gradient_moments(gguf, two, r);
    REQUIRE(a.size() == 14);
    REQUIRE(b.size() == 14);
    const std::size_t size = plain.shape().head_size;
    for (std::size_t layer = 0; layer < 2; ++layer) {
        for (const place& p : plain.linears(layer)) {
            const std::vector<double>& own = a.at(plain.layer_name(p));
            const std::vector<double>& other = b.at(gguf.layer_name(p));
            const bool turned = p.what == role::query || p.what == role::key;
            REQUIRE(own.size() == other.size());
            for (std::size_t c = 0; c < own.size(); ++c) {
                CHECK(own[c] == other[turned ? lab::row_among_neighbours(c, size) : c]);
            }
        }
    }
}

TEST_CASE("predictions are half the sum of mean squares of errors and gradients") {
    const output_moments moments{{"a", {2, 4}}, {"b", {8}}};
    CHECK(predicted_divergence(moments, {{"a", {3, 5}}}, 4) == (3 * 2 + 5 * 4) / 8.0);
    CHECK(predicted_divergence(moments, {{"a", {3, 5}}, {"b", {1}}}, 4) == (26 + 8) / 8.0);
}

TEST_CASE("outputs are compared on the inputs of the model as it is, and predict small effects") {
    const model_weights model(vectors_of("llama"));
    lab::machine on(1);
    evaluation_request r = windows_of_vectors("llama", 40);
    arm how;
    how.settings = settings_of_recipe("weights=mxfp8");
    how.how = lab::precision_of(how.settings, layers_of(model));
    std::vector<arm> alone;
    for (const model_part& p : parts_of(model, level::layer, how)) alone.push_back(only(how, {&p}));
    REQUIRE(alone.size() == 14);
    r.compared = alone;
    r.layer_errors = true;
    const evaluation e = evaluate(model, on, {how}, r);
    REQUIRE(e.compared.size() == 14);
    const output_moments moments = gradient_moments(model, on, r);
    r.compared.clear();
    r.layer_errors = false;
    const evaluation direct = evaluate(model, on, alone, r);
    std::vector<double> predicted, measured;
    for (std::size_t i = 0; i < alone.size(); ++i) {
        REQUIRE(e.compared[i].size() == 1);
        CHECK(e.compared[i].begin()->first == alone[i].how.apart.front().layer);
        predicted.push_back(predicted_divergence(moments, e.compared[i], r.tokens.size()));
        double sum = 0;
        for (const double d : direct.arms[i].divergence) sum += d;
        measured.push_back(sum / static_cast<double>(direct.arms[i].divergence.size()));
        CHECK(predicted.back() > measured.back() / 4);
        CHECK(predicted.back() < measured.back() * 4);
    }
    CHECK(base::spearman(predicted, measured).value_or(0) > 0.6);
}

}  // namespace mx::eval
