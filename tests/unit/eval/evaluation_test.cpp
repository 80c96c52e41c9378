// SPDX-License-Identifier: Apache-2.0
// Evaluations against transformers and a numpy program (datasets/vectors/eval), and what does not
// change them: threads, instruction sets, batches, other arms.
#include "libmx/eval/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "libmx/eval/places.hpp"
#include "libmx/eval/records.hpp"
#include "libmx/eval/transformer.hpp"
#include "libmx/lab/tensor_file.hpp"
#include "tests/catch.hpp"

namespace mx::eval {
namespace {

std::string folder_of(const std::string& name) {
    return std::string(MX_SOURCE_DIR) + "/datasets/vectors/eval/" + name;
}

std::string model_of(const std::string& name) {
    return folder_of(name) + (name.ends_with("-gguf") ? "/model.gguf" : "/model.safetensors");
}

struct reference {
    lab::tensor_file file;
    std::vector<std::uint32_t> ids;

    explicit reference(const std::string& name) : file(folder_of(name) + "/reference.safetensors") {
        const std::vector<std::byte> bytes = file.bytes("ids", tensor::dtype::i32);
        ids.resize(bytes.size() / sizeof(std::uint32_t));
        std::memcpy(ids.data(), bytes.data(), bytes.size());
    }
    std::vector<double> figures(const std::string& name) const {
        const std::vector<std::byte> bytes = file.bytes(name, tensor::dtype::f64);
        std::vector<double> values(bytes.size() / sizeof(double));
        std::memcpy(values.data(), bytes.data(), bytes.size());
        return values;
    }
};

evaluation_request request_of(const std::vector<std::uint32_t>& ids, arithmetic in,
                              std::size_t context = 1000) {
    evaluation_request r;
    r.tokens = ids;
    r.windows =
        windows_of(ids.size(), std::min(context, ids.size()), std::min(context, ids.size()));
    r.in = in;
    return r;
}

arm arm_of(const model_weights& model, const std::string& text) {
    arm a;
    a.name = text;
    a.settings = settings_of_recipe(text);
    a.how = lab::precision_of(a.settings, layers_of(model));
    return a;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
    return most;
}

bool same(const token_scores& a, const token_scores& b) {
    const auto equal = [](const std::vector<double>& x, const std::vector<double>& y) {
        return x.size() == y.size() &&
               std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
    };
    return equal(a.nll, b.nll) && equal(a.divergence, b.divergence) && a.top == b.top;
}

}  // namespace

TEST_CASE("every architecture gives the probabilities of transformers") {
    const std::string name = GENERATE("llama", "llama-gguf", "llama3", "mistral", "qwen2", "qwen3",
                                      "olmo2", "gemma3", "gemma3-gguf", "gemma3-vision",
                                      "gemma3-vision5", "mixtral", "qwen3moe", "qwen3moe-gguf");
    CAPTURE(name);
    const model_weights model(model_of(name));
    const reference known(name);
    lab::execution_context on(1);
    const std::vector<double> exact = known.figures("nll");
    const evaluation wide = evaluate(model, on, {}, request_of(known.ids, arithmetic::float64));
    // transformers computes norms and rotary embeddings in float32.
    CHECK(largest_difference(wide.base.nll, exact) < 3e-5);
    const evaluation narrow = evaluate(model, on, {}, request_of(known.ids, arithmetic::float32));
    CHECK(largest_difference(narrow.base.nll, wide.base.nll) < 3e-5);
}

TEST_CASE("every architecture of the list has vectors") {
    for (const llm::architecture& a : llm::architectures) {
        std::string name(a.name);
        if (name == "gemma3_text") name = "gemma3";
        if (name == "qwen3_moe") name = "qwen3moe";
        const model_weights model(model_of(name));
        CHECK(model.shape().kind == &a);
    }
}

TEST_CASE("recipes give the figures of an independent program") {
    const model_weights model(model_of("llama"));
    const reference known("llama");
    lab::execution_context on(1);
    for (const std::string recipe : {"mxfp4:scale=even", "mxfp8:scale=rceil", "nvfp4"}) {
        CAPTURE(recipe);
        const std::vector<arm> arms = [&] {
            std::vector<arm> two;
            two.push_back(arm_of(model, "weights=" + recipe));
            two.push_back(arm_of(model, recipe));
            return two;
        }();
        const evaluation e = evaluate(model, on, arms, request_of(known.ids, arithmetic::float64));
        CHECK(largest_difference(e.base.nll, known.figures("nll.base")) < 1e-12);
        CHECK(largest_difference(e.arms[0].nll, known.figures("nll.w." + recipe)) < 1e-12);
        CHECK(largest_difference(e.arms[0].divergence, known.figures("kld.w." + recipe)) < 1e-12);
        CHECK(largest_difference(e.arms[1].nll, known.figures("nll.wa." + recipe)) < 1e-12);
        CHECK(largest_difference(e.arms[1].divergence, known.figures("kld.wa." + recipe)) < 1e-12);
    }
}

TEST_CASE("an evaluation has the same bits on every backend, with any threads and other arms") {
    const std::string name = GENERATE("llama", "gemma3", "qwen3moe");
    const model_weights model(model_of(name));
    const reference known(name);
    const arithmetic in = GENERATE(arithmetic::float32, arithmetic::float64);
    const evaluation_request r = request_of(known.ids, in, 17);
    const auto arms_of = [&](std::size_t first) {
        std::vector<arm> all;
        for (const char* text : {"mxfp4", "nvfp4", "weights=mxfp8 x=bf16",
                                 "mxfp8:transform=hadamard", "mxfp4:round=stochastic"}) {
            all.push_back(arm_of(model, text));
        }
        all.back().kv = lab::parse_rule("mxfp8");
        all.back().attention = lab::parse_rule("mxfp4");
        all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first));
        return all;
    };
    lab::execution_context plain(1, "scalar");
    const evaluation expected = evaluate(model, plain, arms_of(0), r);
    for (const lab::simd::kernels* k : lab::simd::available()) {
        for (const int threads : {1, 3}) {
            CAPTURE(k->name, threads);
            lab::execution_context on(threads, k->name);
            const evaluation e = evaluate(model, on, arms_of(0), r);
            CHECK(same(e.base, expected.base));
            for (std::size_t i = 0; i < e.arms.size(); ++i) {
                CHECK(same(e.arms[i], expected.arms[i]));
            }
        }
    }
    const evaluation last = evaluate(model, plain, arms_of(4), r);
    CHECK(same(last.arms[0], expected.arms[4]));
}

TEST_CASE("windows predict every token but the first once") {
    for (const std::size_t tokens : {2u, 9u, 40u}) {
        for (std::size_t context = 2; context < 12; ++context) {
            for (std::size_t stride = 1; stride <= context; ++stride) {
                std::vector<int> times(tokens);
                for (const window& w : windows_of(tokens, context, stride)) {
                    CHECK(w.count <= context);
                    CHECK(w.begin + w.count <= tokens);
                    for (std::size_t i = w.first; i < w.last; ++i) ++times[w.begin + i + 1];
                }
                CHECK(times.front() == 0);
                CHECK(std::count(times.begin(), times.end(), 1) ==
                      static_cast<std::ptrdiff_t>(tokens - 1));
            }
        }
    }
}

TEST_CASE("tokens one by one pass through a block as all at once") {
    const std::string name = GENERATE("llama", "mistral", "gemma3", "mixtral");
    CAPTURE(name);
    const model_weights model(model_of(name));
    const reference known(name);
    const std::size_t d = model.shape().width, n = known.ids.size();
    lab::execution_context on(1);
    transformer<float> net(model, on, n);
    std::vector<float> whole(n * d), one(n * d);
    net.embed(known.ids, whole.data());
    one = whole;
    const arm plain;
    for (std::size_t layer = 0; layer < model.shape().depth; ++layer) {
        net.load(layer);
        net.forward(plain, {1, n, 0, 0}, whole.data());
        block_cache<float> cache;
        cache.positions = n;
        cache.keys.resize(n * model.shape().key_width());
        cache.values.resize(n * model.shape().key_width());
        for (std::size_t t = 0; t < n; ++t) {
            net.forward(plain, {1, 1, t, 0}, one.data() + t * d, &cache);
        }
        REQUIRE(whole == one);
    }
}

TEST_CASE("samples depend on the seed alone, and are what the model predicts") {
    const model_weights model(model_of("llama"));
    lab::execution_context one(1), three(3, "scalar");
    const evaluation_request none;
    const auto draw = [&](lab::execution_context& on, std::uint64_t seed) {
        return sample(model, on, arithmetic::float32, 6, 50, 1, seed, none);
    };
    const std::vector<std::uint32_t> ids = draw(one, 1);
    CHECK(ids.size() == 300);
    CHECK(ids == draw(three, 1));
    CHECK(ids != draw(one, 2));
    evaluation_request r;
    r.tokens = ids;
    r.windows = separate_windows(ids.size(), 50);
    const evaluation e = evaluate(model, one, {}, r);
    // The mean of -ln P over draws from P is the entropy, here within 5 standard errors.
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < e.entropy.size(); ++i) {
        const double off = e.base.nll[i] - e.entropy[i];
        sum += off;
        squares += off * off;
    }
    const auto n = static_cast<double>(e.entropy.size());
    CHECK(e.entropy.size() == 6 * 49);
    CHECK(std::abs(sum / n) < 5 * std::sqrt(squares) / n);
}

TEST_CASE("all parts together are the whole, and a part left out is the rest") {
    const model_weights model(model_of("mixtral"));
    const reference known("mixtral");
    lab::execution_context on(2);
    const arm whole = arm_of(model, "mxfp4");
    const evaluation_request r = request_of(known.ids, arithmetic::float32);
    for (const level by : {level::layer, level::block, level::kind, level::tensor}) {
        const std::vector<model_part> parts = parts_of(model, by, whole);
        std::vector<const model_part*> all, rest;
        for (const model_part& p : parts) all.push_back(&p);
        rest.assign(all.begin() + 1, all.end());
        std::vector<arm> arms;
        arms.push_back(only(whole, all));
        arms.push_back(only(whole, rest));
        arms.push_back(all_but(whole, parts.front()));
        arms.push_back(arm_of(model, "mxfp4"));
        const evaluation e = evaluate(model, on, arms, r);
        CHECK(same(e.arms[0], e.arms[3]));
        CHECK(same(e.arms[1], e.arms[2]));
        CHECK(!same(e.arms[1], e.arms[3]));
    }
    const std::vector<model_part> kinds = parts_of(model, level::kind, whole);
    REQUIRE(kinds.size() == 7);
    CHECK(kinds[4].name == "model.layers.*.block_sparse_moe.experts.*.w1");
    CHECK(parts_of(model, level::layer, whole).size() == 14);
    CHECK(parts_of(model, level::tensor, arm_of(model, "weights=mxfp4")).size() == 14);
}

TEST_CASE("quantiles interpolate") {
    CHECK(quantile({3, 1, 2}, 0.5) == 2);
    CHECK(quantile({1, 2}, 0.99) == 1.99);
    CHECK(quantile({4}, 0.99) == 4);
}

TEST_CASE("the head is quantized where a pattern names it") {
    const model_weights model(model_of("qwen2"));
    const reference known("qwen2");
    lab::execution_context on(1);
    std::vector<arm> arms;
    arms.push_back(arm_of(model, "all=mxfp4"));
    arms.push_back(arm_of(model, "lm_head:all=mxfp4"));
    arms.push_back(arm_of(model, "all=mxfp4 lm_head:all=mxfp4"));
    const evaluation e = evaluate(model, on, arms, request_of(known.ids, arithmetic::float32, 20));
    CHECK(summary_of(e, e.arms[1]).kld_mean > 1e-3);
    CHECK(!same(e.arms[0], e.arms[2]));
}

}  // namespace mx::eval
