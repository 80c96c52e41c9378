// SPDX-License-Identifier: Apache-2.0
// Language models: layers and the whole network against their definition in float64, the text that
// is made, and the bits of trainings.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/lab/language_model.hpp"
#include "libmx/lab/model.hpp"
#include "libmx/lab/training.hpp"
#include "tests/catch.hpp"
#include "tests/io/scratch_dir.hpp"
#include "tests/lab/gradients.hpp"

namespace mx::lab {
namespace {

constexpr double near_enough = 3e-6;  // float32 rounds each of some hundred operations

std::vector<float> draws(std::uint64_t tensor, std::size_t count, float scale = 1) {
    std::vector<float> x(count);
    simd::scalar_kernels.normal({17, tensor}, 0, count, x.data());
    for (float& v : x) v *= scale;
    return x;
}

// Attention token by token, as defined in its header.
doubles attended(const attention_shape& s, std::size_t tokens, const doubles& q, const doubles& k,
                 const doubles& v) {
    const std::size_t half = s.size / 2;
    const auto turned = [&](const doubles& x, std::size_t width, std::size_t t, std::size_t head) {
        doubles y(s.size);
        const double place = static_cast<double>(t % s.context);
        for (std::size_t i = 0; i < half; ++i) {
            const double angle = place * std::pow(10000.0, -2.0 * static_cast<double>(i) /
                                                               static_cast<double>(s.size));
            const double a = x[t * width + head * s.size + i];
            const double b = x[t * width + head * s.size + half + i];
            y[i] = a * std::cos(angle) - b * std::sin(angle);
            y[half + i] = b * std::cos(angle) + a * std::sin(angle);
        }
        return y;
    };
    doubles out(tokens * s.width());
    for (std::size_t head = 0; head < s.heads; ++head) {
        const std::size_t key_head = head * s.key_heads / s.heads;
        for (std::size_t t = 0; t < tokens; ++t) {
            const doubles query = turned(q, s.width(), t, head);
            doubles weight;
            double all = 0;
            const std::size_t first = t - t % s.context;
            for (std::size_t u = first; u <= t; ++u) {
                const doubles key = turned(k, s.key_width(), u, key_head);
                double score = 0;
                for (std::size_t i = 0; i < s.size; ++i) score += query[i] * key[i];
                weight.push_back(std::exp(score / std::sqrt(static_cast<double>(s.size))));
                all += weight.back();
            }
            for (std::size_t u = first; u <= t; ++u) {
                for (std::size_t i = 0; i < s.size; ++i) {
                    out[t * s.width() + head * s.size + i] +=
                        weight[u - first] / all * v[u * s.key_width() + key_head * s.size + i];
                }
            }
        }
    }
    return out;
}

TEST_CASE("attention and its gradients are those of its definition") {
    for (const attention_shape& s :
         {attention_shape{2, 2, 6, 5}, attention_shape{4, 2, 4, 7}, attention_shape{3, 1, 2, 3}}) {
        const std::size_t tokens = 2 * s.context;
        const auto q = draws(1, tokens * s.width(), 2), k = draws(2, tokens * s.key_width(), 2),
                   v = draws(3, tokens * s.key_width()), d_o = draws(4, tokens * s.width());
        execution_context on;
        attention layer(s);
        std::vector<float> o(q.size()), dq(q.size()), dk(k.size()), dv(v.size());
        layer.forward(on, tokens, q.data(), k.data(), v.data(), o.data());
        CHECK(distance(o, attended(s, tokens, wide(q), wide(k), wide(v))) < near_enough);
        layer.backward(on, tokens, q.data(), k.data(), v.data(), d_o.data(), dq.data(), dk.data(),
                       dv.data());
        const auto loss = [&](const doubles& a, const doubles& b, const doubles& c) {
            return dot(attended(s, tokens, a, b, c), d_o);
        };
        CHECK(distance(dq, differences(wide(q), [&](const doubles& x) {
                           return loss(x, wide(k), wide(v));
                       })) < near_enough);
        CHECK(distance(dk, differences(wide(k), [&](const doubles& x) {
                           return loss(wide(q), x, wide(v));
                       })) < near_enough);
        CHECK(distance(dv, differences(wide(v), [&](const doubles& x) {
                           return loss(wide(q), wide(k), x);
                       })) < near_enough);
    }
}

TEST_CASE("positions are turned alike far from the beginning") {
    // sin and cos of hundreds of radians: tests the reduction of the angle.
    const attention_shape s{1, 1, 4, 700};
    const auto q = draws(1, s.context * 4, 2), k = draws(2, s.context * 4, 2),
               v = draws(3, s.context * 4);
    execution_context on;
    attention layer(s);
    std::vector<float> o(q.size());
    layer.forward(on, s.context, q.data(), k.data(), v.data(), o.data());
    CHECK(distance(o, attended(s, s.context, wide(q), wide(k), wide(v))) < near_enough);
}

TEST_CASE("cross-entropy and its gradient are those of its definition") {
    constexpr std::size_t tokens = 5, width = 19;
    const auto y = draws(1, tokens * width, 3);
    const std::vector<std::uint32_t> target{3, 0, 18, 7, 7};
    const auto loss = [&](const doubles& x) {
        double sum = 0;
        for (std::size_t t = 0; t < tokens; ++t) {
            double all = 0;
            for (std::size_t i = 0; i < width; ++i) all += std::exp(x[t * width + i]);
            sum += std::log(all) - x[t * width + target[t]];
        }
        return sum / tokens;
    };
    execution_context on;
    std::vector<float> gradient(y.size());
    array_of<double> losses;
    const auto own_loss = [&](const std::vector<float>& logits) {
        return cross_entropy_loss(on, logits.data(), target.data(), tokens, width, gradient.data(),
                                  losses);
    };
    const float own = own_loss(y);
    CHECK(std::abs(static_cast<double>(own) - loss(wide(y))) < 1e-6);
    CHECK(distance(gradient, differences(wide(y), loss)) < near_enough);
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
        auto spoiled = y;
        spoiled[width - 1] = bad;
        CHECK(std::isnan(own_loss(spoiled)));
    }
}

// The network by its parameters' names, and what keeps its experts evenly used.
struct objective {
    double loss, balance;
    double value() const { return loss + balance; }
};
objective objective_of(const language_network& net, const doubles& values,
                       const std::vector<std::uint32_t>& bytes,
                       const std::vector<std::uint32_t>& target) {
    const language_shape& s = net.shape();
    const std::size_t tokens = bytes.size(), d = s.width;
    const auto part = [&](const std::string& name) {
        const auto& all = net.parameters().all();
        const auto p = std::ranges::find(all, name + ".weight", &parameter::name);
        if (p == all.end()) return doubles();
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(p->first);
        return doubles(first, first + static_cast<std::ptrdiff_t>(p->count));
    };
    const auto times = [&](const doubles& x, const doubles& w) {
        const std::size_t in = x.size() / tokens, out = w.size() / in;
        doubles y(tokens * out);
        for (std::size_t t = 0; t < tokens; ++t) {
            for (std::size_t i = 0; i < out; ++i) {
                for (std::size_t j = 0; j < in; ++j) {
                    y[t * out + i] += x[t * in + j] * w[i * in + j];
                }
            }
        }
        return y;
    };
    const auto normed = [&](const doubles& x, const doubles& gain) {
        if (gain.empty()) return x;
        const std::size_t width = gain.size();
        doubles y(x.size());
        for (std::size_t t = 0; t < tokens; ++t) {
            double mean = 0, square = 0;
            const auto n = static_cast<double>(width);
            for (std::size_t i = 0; i < width && s.norm == norm_kind::layer; ++i) {
                mean += x[t * width + i] / n;
            }
            for (std::size_t i = 0; i < width; ++i) {
                square += std::pow(x[t * width + i] - mean, 2) / n;
            }
            const double scale = 1 / std::sqrt(square + static_cast<double>(norm_eps));
            for (std::size_t i = 0; i < width; ++i) {
                y[t * width + i] = gain[i] * (x[t * width + i] - mean) * scale;
            }
        }
        return y;
    };
    const auto plus = [](doubles a, const doubles& b) {
        for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
        return a;
    };
    const doubles table = part("model.embed_tokens");
    double balance = 0;
    doubles a;
    for (const std::uint32_t b : bytes) {
        a.insert(a.end(), table.begin() + static_cast<std::ptrdiff_t>(b * d),
                 table.begin() + static_cast<std::ptrdiff_t>((b + 1) * d));
    }
    for (std::size_t i = 0; i < s.depth; ++i) {
        const std::string layer = "model.layers." + std::to_string(i);
        const doubles n = normed(a, part(layer + ".input_layernorm"));
        const std::string heads = layer + ".self_attn.";
        const doubles o = attended(s.heads_shape(), tokens,
                                   normed(times(n, part(heads + "q_proj")), part(heads + "q_norm")),
                                   normed(times(n, part(heads + "k_proj")), part(heads + "k_norm")),
                                   times(n, part(heads + "v_proj")));
        a = plus(a, times(o, part(heads + "o_proj")));
        const doubles m = normed(a, part(layer + ".post_attention_layernorm"));
        const auto mlp = [&](const std::string& of) {
            doubles h = times(m, part(of + ".up_proj"));
            const doubles gate = part(of + ".gate_proj");
            const doubles g = gate.empty() ? doubles() : times(m, gate);
            for (std::size_t k = 0; k < h.size(); ++k) {
                h[k] *= gate.empty() ? 0.5 * (1 + std::erf(h[k] / std::sqrt(2.0)))
                                     : g[k] / (1 + std::exp(-g[k]));
            }
            return times(h, part(of + ".down_proj"));
        };
        const std::size_t experts = s.routing.count;
        if (experts == 0) {
            a = plus(a, mlp(layer + ".mlp"));
            continue;
        }
        const doubles scores = times(m, part(layer + ".mlp.gate"));
        std::vector<doubles> outputs;
        for (std::size_t e = 0; e < experts; ++e) {
            outputs.push_back(mlp(layer + ".mlp.experts." + std::to_string(e)));
        }
        doubles chosen(experts), mean(experts);
        for (std::size_t t = 0; t < tokens; ++t) {
            doubles p;
            double all = 0, some = 0;
            for (std::size_t e = 0; e < experts; ++e) {
                p.push_back(std::exp(scores[t * experts + e]));
                all += p.back();
            }
            for (double& x : p) x /= all;
            const auto rank = [&](std::size_t e) {
                return std::ranges::count_if(p, [&](double x) { return x > p[e]; });
            };
            for (std::size_t e = 0; e < experts; ++e) {
                mean[e] += p[e] / static_cast<double>(tokens);
                if (rank(e) >= static_cast<std::ptrdiff_t>(s.routing.used)) continue;
                chosen[e] += 1 / static_cast<double>(tokens * s.routing.used);
                some += p[e];
            }
            for (std::size_t e = 0; e < experts; ++e) {
                if (rank(e) >= static_cast<std::ptrdiff_t>(s.routing.used)) continue;
                const double weight = s.routing.renormalized ? p[e] / some : p[e];
                for (std::size_t k = 0; k < d; ++k) {
                    a[t * d + k] += weight * outputs[e][t * d + k];
                }
            }
        }
        for (std::size_t e = 0; e < experts; ++e) {
            balance += static_cast<double>(s.routing.balance) * static_cast<double>(experts) *
                       chosen[e] * mean[e];
        }
    }
    const doubles y = times(normed(a, part("model.norm")), part("lm_head"));
    double sum = 0;
    for (std::size_t t = 0; t < tokens; ++t) {
        double all = 0;
        for (std::size_t i = 0; i < s.vocabulary; ++i) all += std::exp(y[t * s.vocabulary + i]);
        sum += std::log(all) - y[t * s.vocabulary + target[t]];
    }
    return {sum / static_cast<double>(tokens), balance};
}

TEST_CASE("gradients of whole language models are those of their definition") {
    language_shape olmo{8, 2, 2, 2, 3};

    language_shape llama{8,   1, 4, 2, 3, activation::swiglu, norm_kind::rms, llm::qk_norm::none,
                         true};
    language_shape some = llama, by_one = olmo;
    some.routing = {4, 2, true, 0.5f};
    by_one.routing = {3, 1, false, 0};
    for (const language_shape& s : {olmo, llama, some, by_one}) {
        language_network net(s);
        execution_context on;
        const precision how;
        std::vector<float> values = language_values(net, 0.5f, 1.5f, 3);
        for (const parameter& p : net.parameters().all()) {
            if (p.kind != parameter_kind::weight) continue;
            // So that nothing is nearly linear.
            for (std::size_t i = 0; i < p.count; ++i) values[p.first + i] *= 8;
        }
        const std::vector<std::uint32_t> bytes{1, 2, 1, 255, 0, 2}, target{2, 1, 9, 0, 2, 200};
        const float own = net.forward(on, how, values, bytes.data(), target.data(), 6, 0, 1);
        const double exact = objective_of(net, wide(values), bytes, target).loss;
        CHECK(std::abs(static_cast<double>(own) / exact - 1) < 1e-6);
        std::vector<float> gradients(values.size());
        net.backward(on, how, values, gradients);
        doubles v = wide(values);
        double difference = 0, norm = 0;
        for (const parameter& p : net.parameters().all()) {
            // All of the small ones and of the rows in use, a sample of the others.
            const bool tall = p.shape[0] == s.vocabulary;
            for (std::size_t i = 0; i < p.count; i += tall ? 29 : 1) {
                const std::size_t at = p.first + i;
                const double middle = v[at];
                v[at] = middle + 1e-5;
                const double above = objective_of(net, v, bytes, target).value();
                v[at] = middle - 1e-5;
                const double below = objective_of(net, v, bytes, target).value();
                const double slope = (above - below) / 2e-5;
                v[at] = middle;
                difference += std::pow(static_cast<double>(gradients[at]) - slope, 2);
                norm += slope * slope;
            }
            INFO(p.name);
            CHECK(std::sqrt(difference / norm) < 1e-5);
        }
    }
}

TEST_CASE("the memory of a run includes the copies that its recipes make") {
    for (const char* model : {"olmo", "llama", "proxy"}) {
        const auto bytes = [&](const std::string& settings) {
            run_request r = request_for(model, "");
            r.settings = parse_settings(settings);
            execution_context on;
            return make_model(r, on)->cost().bytes;
        };
        const double plain = bytes("");
        const double rotated = bytes("all=mxfp4:transform=hadamard") - plain;
        const std::string again = "source=requantized ";
        INFO(model);
        CHECK(rotated > 0);
        CHECK(bytes("all=mxfp4:round=stochastic") == plain);
        CHECK(bytes(again + "all=mxfp4") - plain == rotated);
        CHECK(bytes(again + "all=mxfp4:transform=hadamard") - plain == 3 * rotated);
    }
}

TEST_CASE(
    "experts of which a token takes two cost what one MLP of their width does, and a router") {
    const auto flop = [](std::size_t experts) {
        run_request r = request_for("llama", "");
        r.experts = experts;
        execution_context on;
        return make_model(r, on)->cost().flop;
    };
    const run_request r = request_for("llama", "");
    const double router = 6.0 * static_cast<double>(r.batch * r.shape.width * r.shape.depth);
    CHECK(flop(4) == flop(0) + 4 * router);
    CHECK(flop(8) == flop(0) + 8 * router);
}

TEST_CASE("language models begin as they say") {
    language_shape shape;
    const language_network net(shape);
    const std::vector<float> values = language_values(net, 1, 1, 9);
    std::size_t gains = 0;
    for (const parameter& p : net.parameters().all()) {
        const std::vector<float> own(of(values, p), of(values, p) + p.count);
        INFO(p.name);
        CHECK((p.kind == parameter_kind::norm_gain) == (p.shape.size() == 1));
        if (p.kind == parameter_kind::norm_gain) {
            gains += 1;
            CHECK(std::ranges::count(own, 1.0f) == static_cast<std::ptrdiff_t>(p.count));
            continue;
        }
        double square = 0;
        for (const float x : own) square += static_cast<double>(x) * static_cast<double>(x);
        const bool residual = p.name.find("o_proj") != std::string::npos ||
                              p.name.find("down_proj") != std::string::npos;
        const double rms = std::sqrt(square / static_cast<double>(p.count));
        CHECK(std::abs(rms / (residual ? 0.01 : 0.02) - 1) < 0.05);
    }
    CHECK(gains == 2 * 4 + 1);
}

// "experts": Llama with five, of which each token takes two.
run_request little(const std::string& model, const std::string& settings) {
    run_request r = request_for(model == "experts" ? "llama" : model, "tiny");
    if (model == "experts") r.experts = 5;
    r.shape.width = 24;  // no multiple of a block
    r.shape.depth = 2;
    r.heads = 4;
    r.key_heads = 2;
    r.context = 10;
    r.batch = 40;
    r.steps = 5;
    fit_schedule(r);
    r.settings = parse_settings(settings);
    return r;
}

std::unique_ptr<training> done_with(const run_request& r, int threads = 1,
                                    const std::string& backend = {}) {
    auto t = std::make_unique<training>(r, execution_context(threads, backend));
    while (!t->finished()) t->step();
    return t;
}

bool alike(const training& a, const training& b) {
    return a.values().size() == b.values().size() &&
           std::memcmp(a.values().data(), b.values().data(), 4 * a.values().size()) == 0 &&
           a.history().back().loss == b.history().back().loss;
}

TEST_CASE("threads and instruction sets do not show in a language model") {
    for (const char* model : {"olmo", "llama", "experts"}) {
        run_request r = little(model, "all=mxfp8 dy=mxfp4:round=stochastic ln=bf16");
        r.steps = 2;
        r.cosine_steps = 0;
        const auto one = done_with(r, 1, "scalar");
        for (const simd::kernels* k : simd::available()) {
            INFO(model << " " << k->name);
            CHECK(alike(*one, *done_with(r, 1, std::string(k->name))));
        }
        for (const int threads : {2, 3}) {
            INFO(model << " " << threads);
            CHECK(alike(*one, *done_with(r, threads)));
        }
    }
}

TEST_CASE("a language model that is resumed ends in the bits of one that was not") {
    const test::scratch_dir dir;
    run_request r = little("olmo", "all=mxfp8:round=stochastic");
    r.interventions = {{2, parse_settings("*.mlp.*:all=bf16")}};
    r.probe_every = 2;
    const auto whole = done_with(r);
    for (const std::uint64_t stop : {0u, 1u, 3u, 5u}) {
        training first(r, execution_context());
        while (first.done() < stop) first.step();
        first.save(dir / "half.safetensors");
        training second(dir / "half.safetensors", execution_context(2));
        while (!second.finished()) second.step();
        INFO("stopped after " << stop);
        CHECK(alike(*whole, second));
    }
}

TEST_CASE("a pattern reaches the layers that it names, and Llama's head only by name") {
    const auto kept = [](const char* model, const std::string& a, const std::string& b) {
        run_request r = little(model, a);
        r.steps = 2;
        const auto first = done_with(r);
        r.settings = parse_settings(b);
        return alike(*first, *done_with(r));
    };
    CHECK(kept("llama", "all=mxfp4", "*.layers.*:all=mxfp4"));
    CHECK_FALSE(kept("llama", "all=mxfp4", "all=mxfp4 lm_head:all=mxfp4"));
    CHECK_FALSE(kept("olmo", "all=mxfp4", "*.layers.*:all=mxfp4"));
    CHECK(kept("olmo", "all=mxfp4", "*:all=mxfp4"));
    CHECK(kept("olmo", "w=mxfp8 x=mxfp6", "weights=mxfp8 activations=mxfp6"));
    CHECK_FALSE(kept("olmo", "all=mxfp4", "all=mxfp4 *.1.mlp.up_proj:w=none"));
    const auto layers = layers_of(little("olmo", ""));
    const precision p = precision_of(parse_settings("all=mxfp4 *.q_proj:w=bf16"), layers);
    CHECK(p.apart.size() == 2);
    CHECK(to_string(p.of("model.layers.1.self_attn.q_proj").operands[0][1]) == "bf16");
    CHECK(to_string(p.of("model.layers.1.self_attn.k_proj").operands[0][1]) == "mxfp4");
    CHECK_THROWS_AS(precision_of(parse_settings("*.r_proj:w=bf16"), layers), base::error);
    CHECK(to_string(parse_settings("*.q_proj:weights=bf16")) == "*.q_proj:w=bf16");
}

TEST_CASE("clipping, warm-up and weight decay do what they say") {
    run_request r = little("olmo", "");
    CHECK(r.warmup_steps == 1);
    r.rate = 1;
    r.least_rate = 0.1;
    r.warmup_steps = 4;
    r.cosine_steps = 14;
    CHECK(rate_of(r, 1) == 0.25);
    CHECK(rate_of(r, 4) == 1.0);
    CHECK(rate_of(r, 5) < 1.0);
    CHECK(rate_of(r, 14) > 0.1);
    CHECK(std::abs(rate_of(r, 15) - 0.1) < 1e-12);
    CHECK(std::abs(rate_of(r, 1000) - 0.1) < 1e-12);
    // The clipped step of plain descent is as long as the rate times the bound.
    r = little("olmo", "");
    r.by = optimizer::sgd;
    r.rate = 0.5;
    r.steps = 1;
    r.cosine_steps = r.warmup_steps = 0;
    r.clip = 1e-3;
    training t(r, execution_context());
    const std::vector<float> before = t.values();
    t.step();
    double moved = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
        moved += std::pow(static_cast<double>(t.values()[i]) - static_cast<double>(before[i]), 2);
    }
    CHECK(t.history().back().gradient_norm > 1e-2);
    CHECK(std::abs(std::sqrt(moved) / 5e-4 - 1) < 1e-3);
    // Decay moves weights by rate * decay, gains not at all.
    r.by = optimizer::adam;
    r.clip = 0;
    const auto free = done_with(r);
    r.adam.decay = 0.01;
    const auto decayed = done_with(r);
    for (const parameter& p : free->network().parameters().all()) {
        const float w = before[p.first], x = free->values()[p.first];
        const float expected = p.kind == parameter_kind::weight ? x - 0.005f * w : x;
        CHECK(std::abs(decayed->values()[p.first] - expected) < 1e-6f);
    }
}

TEST_CASE("made text has the entropy that it is said to have") {
    const auto text = made_text();
    constexpr std::size_t length = 65, count = 20000;
    std::vector<std::uint32_t> s(length), again(length);
    // The probability of each byte by the definition, from the counts of pairs of letters.
    std::map<std::string, std::map<char, double>> follows;
    std::vector<std::string> all;
    for (std::uint64_t i = 0; i < count; ++i) {
        text->sequence(5, i, s);
        all.emplace_back(s.begin(), s.end());
        CHECK(s.front() == '\n');
    }
    text->sequence(5, 77, again);
    CHECK(std::string(again.begin(), again.end()) == all[77]);
    text->sequence(6, 77, again);
    CHECK(std::string(again.begin(), again.end()) != all[77]);
    double copied = 0, brackets = 0;
    const auto visit = [&](const std::string& line, const auto& letter) {
        if (line[0] == '.') {
            for (std::size_t i = 1; i < line.size(); ++i) {
                std::string pair{i > 2 ? line[i - 2] : 'a', i > 1 ? line[i - 1] : 'a'};
                if (i == 1) pair = "aa*";  // no end before the first letter
                letter(pair, line[i]);
            }
        }
    };
    const auto each_line = [&](const auto& f) {
        for (const std::string& one : all) {
            for (std::size_t at = 1; at < one.size();) {
                const std::size_t end = std::min(one.find('\n', at), one.size() - 1);
                f(one.substr(at, end - at + 1));
                at = end + 1;
            }
        }
    };
    each_line([&](const std::string& line) {
        visit(line, [&](const std::string& pair, char next) { follows[pair][next] += 1; });
        if (line.back() != '\n') return;  // the end of the sequence
        if (line[0] == '=') {
            CHECK(line.substr(1, 8) == line.substr(10, 8));
            CHECK(line.size() == 19);
            copied += 1;
        } else if (line[0] == '#') {
            std::string open;
            for (const char c : line.substr(1, 12)) {
                const auto kind = std::string(")]}>").find(c);
                if (kind == std::string::npos) {
                    open += c;
                } else {
                    REQUIRE(open.back() == "([{<"[kind]);
                    open.pop_back();
                }
            }
            CHECK(open.empty());
            CHECK(line.size() == 14);
            brackets += 1;
        }
    });
    CHECK(copied > 0);
    CHECK(brackets > 0);
    // The measured entropy of letters (its bias is (16 - 1) / 2n) compared with r^-2 and 1/16.
    double counted = 0, weight = 0;
    for (const auto& [pair, next] : follows) {
        double n = 0, h = 0;
        for (const auto& [c, k] : next) n += k;
        if (n < 400 || pair.size() == 3) continue;
        for (const auto& [c, k] : next) h -= k / n * std::log(k / n);
        counted += n * (h + 8 / n);
        weight += n;
    }
    double zipf = 0, h = 0;
    for (int r = 1; r <= 16; ++r) zipf += 1.0 / (r * r);
    for (int r = 1; r <= 16; ++r) h += std::log(zipf * r * r) / (zipf * r * r);
    const double ends = -(1.0 / 16) * std::log(1.0 / 16) - 15.0 / 16 * std::log(15.0 / 16);
    CHECK(std::abs(counted / weight - (ends + 15.0 / 16 * h)) < 0.01);
    // By hand: half, a quarter and a quarter of the lines, each with its nats and bytes.
    const double of_kind = 1.5 * std::log(2.0);
    const double of_letters = h + 16 * (ends + 15.0 / 16 * h);
    CHECK(text->floor(1) == of_kind);
    const double copy = 8 * std::log(16.0);
    // The mean entropy of 12 brackets, over all their ways.
    const std::function<double(int, int)> way = [&](int left, int depth) -> double {
        if (left == 0) return 0;
        if (depth == 0) return std::log(4.0) + way(left - 1, 1);
        if (depth == left) return way(left - 1, depth - 1);
        return std::log(2.0) + 0.5 * (std::log(4.0) + way(left - 1, depth + 1)) +
               0.5 * way(left - 1, depth - 1);
    };
    const double line = of_kind + 0.5 * of_letters + 0.25 * copy + 0.25 * way(12, 0);
    const double bytes = 0.5 * 18 + 0.25 * 19 + 0.25 * 14;
    CHECK(std::abs(made_text_entropy() - line / bytes) < 1e-6);
    // Long sequences approach the rate.
    CHECK(std::abs(*text->floor(200000) - made_text_entropy()) < 1e-4);
}

TEST_CASE("a language model learns the text that is made, and stays above its entropy") {
    run_request r = request_for("llama", "tiny");
    r.shape.width = 32;
    r.shape.depth = 1;
    r.context = 32;
    r.batch = 512;
    r.steps = 60;
    r.rate = 0.01;
    fit_schedule(r);
    const auto t = done_with(r);
    CHECK(std::abs(static_cast<double>(t->history().front().loss) - std::log(256.0)) < 0.1);
    CHECK(t->history().back().loss < 3.0f);
    CHECK(static_cast<double>(t->history().back().loss) > *t->network().loss_floor());
}

TEST_CASE("the last tenth of a file is held out, and its loss is that of four batches there") {
    const test::scratch_dir dir;
    const std::string path = dir / "text";
    // Small letters in the first nine tenths, capitals in the last.
    std::string bytes;
    for (int i = 0; i < 999; ++i) bytes += static_cast<char>('a' + (i * i + i / 7) % 16);
    for (int i = 0; i < 110; ++i) bytes += static_cast<char>('A' + (i * i + i / 5) % 16);
    std::ofstream(path) << bytes;
    constexpr std::size_t context = 16;
    const auto text = text_of_file(path, context);
    std::vector<std::uint32_t> one(context + 1);
    for (std::uint64_t i = 0; i < 300; ++i) {
        text->sequence(3, i, one);
        CHECK(std::ranges::all_of(one, [](std::uint32_t b) { return b >= 'a'; }));
    }
    for (const std::uint64_t count : {1, 2, 7}) {
        for (std::uint64_t i = 0; i < count; ++i) {
            REQUIRE(text->held_out(i, count, one));
            CHECK(std::ranges::all_of(one, [](std::uint32_t b) { return b < 'a'; }));
        }
        // The first window begins the tenth, the last one ends it.
        CHECK(std::equal(one.begin(), one.end(), bytes.begin() + (count == 1 ? 999 : 1109 - 17)));
    }
    CHECK_FALSE(made_text()->held_out(0, 1, one));

    run_request r = little("llama", "all=mxfp8");
    r.text_file = path;
    const auto t = done_with(r);
    CHECK_FALSE(t->held_out_loss());
    t->evaluate();
    REQUIRE(t->held_out_loss());
    // Again, by another network of the same shape.
    language_network network(language_shape_of(r));
    execution_context on;
    const precision how = precision_of(r.settings, network.layers());
    double sum = 0;
    const std::size_t sequences = r.batch / r.context;
    for (std::size_t batch = 0; batch < 4; ++batch) {
        std::vector<std::uint32_t> in, target;
        for (std::size_t s = 0; s < sequences; ++s) {
            std::vector<std::uint32_t> window(r.context + 1);
            const std::size_t free = 110 - window.size();
            const std::size_t at = free * (batch * sequences + s) / (4 * sequences - 1);
            std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(999 + at), window.size(),
                        window.begin());
            in.insert(in.end(), window.begin(), window.end() - 1);
            target.insert(target.end(), window.begin() + 1, window.end());
        }
        sum += static_cast<double>(network.forward(on, how, t->values(), in.data(), target.data(),
                                                   in.size(), r.seed, r.steps + 1));
    }
    CHECK(*t->held_out_loss() == sum / 4);
    r.text_file.clear();
    const auto made = done_with(r);
    made->evaluate();
    CHECK_FALSE(made->held_out_loss());
}

TEST_CASE("requests of language models that cannot be are refused") {
    const auto broken = [](const std::function<void(run_request&)>& change) {
        run_request r = little("llama", "");
        change(r);
        CHECK_THROWS_AS(check(r), base::error);
    };
    broken([](run_request& r) { r.heads = 5; });
    broken([](run_request& r) { r.key_heads = 3; });
    broken([](run_request& r) { r.batch = 41; });
    broken([](run_request& r) { r.shape.norm = norm_kind::none; });
    broken([](run_request& r) { r.warmup_steps = 5; });
    CHECK_THROWS_AS(request_for("llama", "huge"), base::error);
    CHECK_THROWS_AS(request_for("proxy", "tiny"), base::error);
    CHECK_THROWS_AS(request_for("gpt", ""), base::error);
    const run_request r = little("olmo", "all=mxfp8 *.mlp.*:w=bf16");
    CHECK(from_text(to_text(r)) == r);
    CHECK_THROWS_AS(from_text({{"model", "olmo"}, {"task", "teacher"}}), base::error);
}

}  // namespace
}  // namespace mx::lab
