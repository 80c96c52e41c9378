// SPDX-License-Identifier: Apache-2.0
#include "libmx/eval/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

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

arm all_but(const model_weights& model, const arm& how, const model_part& part) {
    arm a;
    a.kv = how.kv;
    a.attention = how.attention;
    for (std::size_t i = 0; i < model.shape().depth; ++i) {
        for (const place& p : model.linears(i)) {
            const std::string layer = model.layer_name(p);
            const bool in = std::ranges::find(part.layers, layer) != part.layers.end();
            const lab::precision own = kept(how.how.of(layer), !in || !part.inputs,
                                            !in || !part.weights);
            a.how.apart.push_back({layer, own});
        }
    }
    return a;
}

}  // namespace mx::eval
