// SPDX-License-Identifier: Apache-2.0
#include "libmx/eval/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>

#include "libmx/base/glob.hpp"
#include "libmx/base/status.hpp"
#include "libmx/lab/language_model.hpp"

namespace mx::eval {
namespace {

// A name with its numbers as '*', all of them or those after the first.
std::string without_numbers(std::string_view name, bool keep_first) {
    std::string text;
    for (std::size_t i = 0; i < name.size();) {
        const auto digit = [&](std::size_t at) {
            return at < name.size() && std::isdigit(static_cast<unsigned char>(name[at])) != 0;
        };
        const bool begins = digit(i) && i > 0 && name[i - 1] == '.';
        std::size_t end = i;
        while (digit(end)) ++end;
        if (!begins || (end < name.size() && name[end] != '.')) {
            text += name[i++];
            continue;
        }
        text += keep_first ? std::string(name.substr(i, end - i)) : "*";
        keep_first = false;
        i = end;
    }
    return text;
}

bool quantizes(const lab::operand_rule& r) { return r.recipe.has_value(); }

// The precision of one layer with some of its operands as they are.
lab::precision kept(lab::precision p, bool inputs, bool weights) {
    p.apart.clear();
    if (!inputs) p.operands[0][0] = {};
    if (!weights) p.operands[0][1] = {};
    if (!inputs && !weights) p.accumulate.reset();
    return p;
}

}  // namespace

std::vector<model_part> parts_of(const model_weights& model, level by, const arm& how) {
    std::vector<model_part> all;
    const auto add = [&](const std::string& name, const std::string& layer, bool x, bool w) {
        const auto at = std::ranges::find(all, name, &model_part::name);
        if (at != all.end()) return at->layers.push_back(layer);
        all.push_back({name, {layer}, x, w});
    };
    for (std::size_t i = 0; i < model.shape().depth; ++i) {
        for (const place& p : model.linears(i)) {
            const std::string layer = model.layer_name(p);
            const lab::precision& own = how.how.of(layer);
            const bool x = quantizes(own.operands[0][0]), w = quantizes(own.operands[0][1]);
            if (!x && !w) continue;
            const std::string name = without_numbers(layer, true);
            switch (by) {
                case level::layer:
                    add(name, layer, true, true);
                    break;
                case level::block:
                    add(fmt::format("block {}", i), layer, true, true);
                    break;
                case level::kind:
                    add(without_numbers(layer, false), layer, true, true);
                    break;
                case level::tensor:
                    if (x) add(name + ":x", layer, true, false);
                    if (w) add(name + ":w", layer, false, true);
                    break;
            }
        }
    }
    return all;
}

arm only(const arm& how, const std::vector<const model_part*>& parts) {
    arm a;
    for (const model_part* part : parts) {
        for (const std::string& layer : part->layers) {
            const auto at = std::ranges::find(a.how.apart, layer, &lab::layer_precision::layer);
            if (at == a.how.apart.end()) {
                a.how.apart.push_back(
                    {layer, kept(how.how.of(layer), part->inputs, part->weights)});
                continue;
            }
            const lab::precision& own = how.how.of(layer);
            if (part->inputs) at->own.operands[0][0] = own.operands[0][0];
            if (part->weights) at->own.operands[0][1] = own.operands[0][1];
        }
    }
    return a;
}

arm all_but(const arm& how, const model_part& part) {
    arm a;
    a.kv = how.kv;
    a.attention = how.attention;
    a.how = how.how;
    for (const std::string& layer : part.layers) {
        const lab::precision own = kept(how.how.of(layer), !part.inputs, !part.weights);
        const auto at = std::ranges::find(a.how.apart, layer, &lab::layer_precision::layer);
        if (at == a.how.apart.end()) {
            a.how.apart.push_back({layer, own});
        } else {
            at->own = own;
        }
    }
    return a;
}

activation_file::activation_file(const std::string& path, const model_weights& model,
                                 const std::vector<std::string>& patterns,
                                 const std::vector<window>& windows) {
    std::size_t rows = 0, longest = 0;
    for (const window& w : windows) {
        rows += w.count;
        longest = std::max(longest, w.count);
    }
    std::vector<io::planned_array> plan;
    const bool trained = lab::not_trained(model.shape()).empty();
    std::vector<std::pair<std::size_t, place>> weights;  // by number in the plan
    const auto offer = [&](const std::string& layer, std::string_view name, std::size_t count,
                           std::size_t cols) {
        const std::string whole = fmt::format("{}.{}", layer, name);
        const bool requested = std::ranges::any_of(patterns, [&](const std::string& g) {
            return base::glob_match(g, whole) && (name != "p" || g.ends_with(".p"));
        });
        if (!requested) return false;
        arrays_.emplace(whole, place_in_file{plan.size(), cols});
        plan.push_back({whole, tensor::dtype::f32, {count, cols}});
        return true;
    };
    const model_shape& s = model.shape();
    for (std::size_t i = 0; i < s.depth; ++i) {
        offer(model.block_name(i), "residual", rows, s.width);
        for (const place& p : model.linears(i)) {
            if (p.what >= role::expert_gate) continue;
            const tensor::shape extents = model.extents(p);
            const auto out = static_cast<std::size_t>(extents[0]);
            const auto in = static_cast<std::size_t>(extents[1]);
            const std::string layer = model.layer_name(p);
            offer(layer, "x", rows, in);
            if (offer(layer, "weight", out, in)) weights.emplace_back(plan.size() - 1, p);
            if (trained && offer(layer, "dy", rows, out)) gradients_ = true;
        }
        if (offer(model.layer_name({role::query, i}), "p", rows * s.heads, longest)) {
            probabilities_ = true;
        }
        offer(model.layer_name({role::key, i}), "k_cache", rows, s.key_width());
        offer(model.layer_name({role::value, i}), "v_cache", rows, s.key_width());
    }
    offer(model.layer_name({role::last_norm}), "residual", rows, s.width);
    offer(model.layer_name(model.head()), "x", rows, s.width);
    constexpr double most_probabilities = 4e9;  // bytes of a window's
    const double square = static_cast<double>(longest) * static_cast<double>(longest);
    if (probabilities_ && 4 * square * static_cast<double>(s.heads) > most_probabilities) {
        base::refuse(
            "--dump: probabilities of {} heads and {} tokens take more than 4 GB; give a "
            "smaller --context",
            s.heads, longest);
    }
    if (plan.empty()) {
        const bool gradients =
            std::ranges::any_of(patterns, [](const std::string& g) { return g.ends_with("dy"); });
        if (gradients) lab::language_shape_of(s, 0, model.path());  // says why there are none
        base::refuse("--dump: no matrix has such a name; there are {}.x, and others like it",
                     model.layer_name({role::query, 0}));
    }
    file_ = io::create_safetensors(path, plan, {{"mx", "activations of " + model.path()}});
    for (const auto& [index, p] : weights) {
        const std::vector<float> values = model.read(p);
        file_->write(index, 0, std::as_bytes(std::span(values)));
    }
}

void activation_file::add(std::string_view layer, std::string_view name, std::size_t rows,
                          std::size_t cols, const float* values) {
    const auto at = arrays_.find(fmt::format("{}.{}", layer, name));
    if (at == arrays_.end()) return;
    std::vector<float> wide;
    if (cols < at->second.cols) {  // positions that a shorter window does not have
        wide.resize(rows * at->second.cols);
        for (std::size_t r = 0; r < rows; ++r) {
            std::copy_n(values + r * cols, cols, wide.data() + r * at->second.cols);
        }
        values = wide.data();
    }
    const std::span some(values, rows * at->second.cols);
    file_->write(at->second.index, at->second.written, std::as_bytes(some));
    at->second.written += some.size_bytes();
}

void activation_file::add_gradients(std::string_view layer, std::size_t rows, std::size_t all,
                                    std::size_t cols, const float* values) {
    add(layer, "dy", rows, cols, values);
    const std::vector<float> zeros((all - rows) * cols);
    add(layer, "dy", all - rows, cols, zeros.data());
}

}  // namespace mx::eval
