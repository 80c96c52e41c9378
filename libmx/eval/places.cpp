// SPDX-License-Identifier: Apache-2.0
#include "libmx/eval/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>

#include "libmx/base/glob.hpp"
#include "libmx/base/status.hpp"

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
                                 const std::vector<std::string>& patterns, std::size_t rows) {
    std::vector<io::planned_array> plan;
    const auto offer = [&](const place& p, std::string_view name, std::size_t cols) {
        const std::string whole = fmt::format("{}.{}", model.layer_name(p), name);
        const bool wanted = std::ranges::any_of(
            patterns, [&](const std::string& g) { return base::glob_match(g, whole); });
        if (!wanted) return;
        arrays_.emplace(whole, place_in_file{plan.size()});
        plan.push_back({whole, tensor::dtype::f32, {rows, cols}});
    };
    const model_shape& s = model.shape();
    for (std::size_t i = 0; i < s.depth; ++i) {
        for (const place& p : model.linears(i)) {
            if (p.what >= role::expert_gate) continue;
            offer(p, "x", static_cast<std::size_t>(model.extents(p)[1]));
        }
        offer({role::key, i}, "k_cache", s.key_width());
        offer({role::value, i}, "v_cache", s.key_width());
    }
    if (plan.empty()) {
        base::refuse("--dump: no matrix has such a name; there are {}.x, and others like it",
                     model.layer_name({role::query, 0}));
    }
    file_ = io::create_safetensors(path, plan, {{"mx", "activations of " + model.path()}});
}

void activation_file::add(std::string_view layer, std::string_view name, std::size_t rows,
                          std::size_t cols, const float* values) {
    const auto at = arrays_.find(fmt::format("{}.{}", layer, name));
    if (at == arrays_.end()) return;
    const std::span some(values, rows * cols);
    file_->write(at->second.index, at->second.written, std::as_bytes(some));
    at->second.written += some.size_bytes();
}

}  // namespace mx::eval
