// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/precision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "libmx/base/glob.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/lab/schemes.hpp"

namespace mx::lab {
namespace {

// Operands as [stage, position].
constexpr std::pair<int, int> fprop_x{0, 0}, fprop_w{0, 1}, dgrad_dy{1, 0}, dgrad_w{1, 1},
    wgrad_dy{2, 0}, wgrad_x{2, 1};

template <const std::pair<int, int>&... places>
void set_operands(precision& p, const std::string& value) {
    const operand_rule rule = parse_rule(value);
    ((p.operands[static_cast<std::size_t>(places.first)][static_cast<std::size_t>(places.second)] =
          rule),
     ...);
}

rounding parse_rounding(const std::string& value) {
    if (value == "fp32" || value == "f32") return rounding::none;
    if (value == "bf16") return rounding::bf16;
    if (value == "bf16-even") return rounding::bf16_even;
    base::refuse(base::unknown("precision", value, {"fp32", "bf16", "bf16-even"}));
}

void set_scheme(precision& p, const std::string& value) {
    const scheme& s = base::row_named(schemes, "scheme", value);
    p = precision();
    for (const setting& one : parse_settings(s.settings)) apply(p, one);
}

constexpr std::string_view a_recipe = "RECIPE";
constexpr std::string_view a_rounding = "TYPE";

constexpr std::array precision_rows{
    precision_key{"all", "", a_recipe, "all six operands",
                  set_operands<fprop_x, fprop_w, dgrad_dy, dgrad_w, wgrad_dy, wgrad_x>},
    precision_key{"forward", "", a_recipe, "both operands of Fprop",
                  set_operands<fprop_x, fprop_w>},
    precision_key{"backward", "", a_recipe, "the four operands of Dgrad and Wgrad",
                  set_operands<dgrad_dy, dgrad_w, wgrad_dy, wgrad_x>},
    precision_key{"x", "activations", a_recipe, "activations in every product",
                  set_operands<fprop_x, wgrad_x>},
    precision_key{"w", "weights", a_recipe, "weights in every product",
                  set_operands<fprop_w, dgrad_w>},
    precision_key{"dy", "gradients", a_recipe, "gradients in every product",
                  set_operands<dgrad_dy, wgrad_dy>},
    precision_key{"fprop-x", "", a_recipe, "X in Y = X W^T", set_operands<fprop_x>},
    precision_key{"fprop-w", "", a_recipe, "W in Y = X W^T", set_operands<fprop_w>},
    precision_key{"dgrad-dy", "", a_recipe, "dY in dX = dY W", set_operands<dgrad_dy>},
    precision_key{"dgrad-w", "", a_recipe, "W in dX = dY W", set_operands<dgrad_w>},
    precision_key{"wgrad-dy", "", a_recipe, "dY in dW = dY^T X", set_operands<wgrad_dy>},
    precision_key{"wgrad-x", "", a_recipe, "X in dW = dY^T X", set_operands<wgrad_x>},
    precision_key{
        "source", "", "WHICH",
        "of an operand of two products: original, quantized from the tensor each time, or "
        "requantized",
        [](precision& p, const std::string& v) {
            if (v != "original" && v != "requantized") {
                base::refuse(base::unknown("source", v, {"original", "requantized"}));
            }
            p.requantize = v == "requantized";
        }},
    precision_key{"vector", "", a_rounding,
                  "of operands before their recipe and of results of products: fp32, bf16 (ties "
                  "away from zero as microxcaling does) or bf16-even",
                  [](precision& p, const std::string& v) {
                      p.vector_forward = p.vector_backward = parse_rounding(v);
                  }},
    precision_key{"vector-forward", "", a_rounding, "the same, forward only",
                  [](precision& p, const std::string& v) { p.vector_forward = parse_rounding(v); }},
    precision_key{
        "vector-backward", "", a_rounding, "the same, backward only",
        [](precision& p, const std::string& v) { p.vector_backward = parse_rounding(v); }},
    precision_key{"ln", "", a_rounding, "of every step inside layer norms",
                  [](precision& p, const std::string& v) {
                      p.norm_forward = p.norm_backward = p.norm_statistics = parse_rounding(v);
                  }},
    precision_key{"ln-forward", "", a_rounding, "the same, forward only",
                  [](precision& p, const std::string& v) {
                      p.norm_forward = p.norm_statistics = parse_rounding(v);
                  }},
    precision_key{"ln-backward", "", a_rounding, "the same, backward only",
                  [](precision& p, const std::string& v) { p.norm_backward = parse_rounding(v); }},
    precision_key{
        "ln-statistics", "", a_rounding,
        "of input, gain, bias, mean and variance of layer norms, until eps is added",
        [](precision& p, const std::string& v) { p.norm_statistics = parse_rounding(v); }},
    precision_key{
        "ln-bias", "", "trained|frozen", "whether the biases of layer norms get a gradient",
        [](precision& p, const std::string& v) {
            if (v != "trained" && v != "frozen") {
                base::refuse(base::unknown("value for ln-bias:", v, {"trained", "frozen"}));
            }
            p.norm_bias_trains = v == "trained";
        }},
    precision_key{"ln-gain", "", a_recipe,
                  "gains of layer norms; the gradient passes straight through",
                  [](precision& p, const std::string& v) { p.gain = parse_rule(v); }},
    precision_key{"ln-input", "", a_recipe, "inputs of layer norms",
                  [](precision& p, const std::string& v) { p.norm_input = parse_rule(v); }},
    precision_key{"ln-output", "", a_recipe, "outputs of layer norms",
                  [](precision& p, const std::string& v) { p.norm_output = parse_rule(v); }},
    precision_key{
        "teacher", "", "quantized|fp32",
        "proxy: whether its labels come from a teacher with the precision of the forward pass, as "
        "in MX runs of the code of su.coded, or in float32 (fp32, in every scheme)",
        [](precision& p, const std::string& v) {
            if (v != "quantized" && v != "fp32") {
                base::refuse(base::unknown("value for teacher:", v, {"quantized", "fp32"}));
            }
            p.teacher_quantized = v == "quantized";
        }},
    precision_key{"accumulate", "", "MODEL",
                  "how products are summed: chain, or a model (mx explain accumulators)",
                  [](precision& p, const std::string& v) {
                      p.accumulate.reset();
                      if (v != "chain") p.accumulate = gemm::parse_accumulator(v);
                  }},
    precision_key{"scheme", "", "NAME", "everything, by name", set_scheme},
};

// Rotations cancel if both operands of a product have the same one.
void find_rotations(precision& p) {
    const products::operand_recipe plain{{}, &products::plain_formats().front(), false};
    for (std::size_t i = 0; i < p.operands.size(); ++i) {
        const auto& pair = p.operands[i];
        p.rotations[i] = products::common_rotation(pair[0].recipe.value_or(plain),
                                                   pair[1].recipe.value_or(plain));
        for (const operand_rule& r : pair) {
            if (r.recipe && r.recipe->blocks && codec::bumps_positions(*r.recipe->blocks) &&
                p.accumulate) {
                base::refuse(
                    "exponents raised position by position: no accumulator model takes such "
                    "scales; leave out accumulate");
            }
        }
    }
    for (const operand_rule* r : {&p.gain, &p.norm_input, &p.norm_output}) {
        if (r->recipe && r->recipe->rotation().what != transform::kind::none) {
            base::refuse(
                "a recipe of a layer norm has no product in which its transform would cancel");
        }
        if (r->recipe && r->recipe->blocks && r->recipe->blocks->block.rows > 1 &&
            r->recipe->blocks->block.cols == 1) {
            base::refuse("'{}': blocks of a layer norm lie along the features; give block=1x{}",
                         to_string(*r), r->recipe->blocks->block.rows);
        }
    }
}

}  // namespace

bool operator==(const operand_rule& a, const operand_rule& b) {
    return to_string(a) == to_string(b);
}

bool is_random(const precision& how) {
    const auto draws = [](const operand_rule& r) {
        return r.recipe && r.recipe->blocks &&
               r.recipe->blocks->round == format::rounding::stochastic;
    };
    return draws(how.gain) || draws(how.norm_input) || draws(how.norm_output) ||
           std::ranges::any_of(
               how.operands, [&](const auto& pair) { return draws(pair[0]) || draws(pair[1]); }) ||
           std::ranges::any_of(how.apart, [](const auto& layer) { return is_random(layer.own); });
}

operand_rule parse_rule(const std::string& text) {
    if (text == "none" || text == "f32" || text == "fp32") return {};
    if (text.find("systems-scaling") != std::string::npos) {
        const codec::recipe r = codec::parse_block_recipe(text);
        if (codec::bumps_positions(r)) return {products::operand_recipe{r, nullptr, false}};
    }
    operand_rule rule{products::parse_operand_recipe(text)};
    if (rule.recipe->blocks) {
        codec::refuse_outer_areas(*rule.recipe->blocks,
                                  "which training runs do not support; leave out outer");
    }
    return rule;
}

std::string to_string(const operand_rule& r) {
    return r.recipe ? products::to_string(*r.recipe) : "none";
}

std::span<const precision_key> precision_keys() { return precision_rows; }

void apply(precision& p, const setting& s) {
    base::row_named(precision_rows, "setting", s.key).set(p, s.value);
}

std::vector<setting> parse_settings(std::string_view text) {
    std::vector<setting> settings;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(text.size(), end + 1));
        if (word.empty()) continue;
        const std::size_t equals = word.find('=');
        setting s{"scheme", std::string(word), {}};
        if (equals != std::string_view::npos) {
            s = {std::string(word.substr(0, equals)), std::string(word.substr(equals + 1)), {}};
            const std::size_t colon = s.key.find(':');
            if (colon != std::string::npos) {
                s.layers = s.key.substr(0, colon);
                s.key.erase(0, colon + 1);
            }
            std::ranges::replace(s.key, '.', '-');
            for (const precision_key& k : precision_rows) {
                if (!k.also.empty() && k.also == s.key) s.key = k.name;
            }
        }
        precision tried;
        apply(tried, s);
        settings.push_back(std::move(s));
    }
    return settings;
}

std::string to_string(const std::vector<setting>& settings) {
    std::string text;
    for (const setting& s : settings) {
        text += fmt::format("{}{}{}{}={}", text.empty() ? "" : " ", s.layers,
                            s.layers.empty() ? "" : ":", s.key, s.value);
    }
    return text;
}

precision precision_of(const std::vector<setting>& settings,
                       const std::vector<layer_name>& layers) {
    const auto of_layer = [&](const layer_name* layer) {
        precision p;
        for (const setting& s : settings) {
            if (!s.layers.empty() && (!layer || !base::glob_match(s.layers, layer->name))) continue;
            apply(p, s);
            if (layer && layer->kept && s.layers.empty()) p.operands = {};
        }
        find_rotations(p);
        return p;
    };
    precision p = of_layer(nullptr);
    p.settings = to_string(settings);
    for (const setting& s : settings) {
        const auto named = [&](const layer_name& l) { return base::glob_match(s.layers, l.name); };
        if (!s.layers.empty() && s.key == "teacher") {
            base::refuse("teacher={}: applies to all layers; leave out '{}:'", s.value, s.layers);
        }
        if (s.layers.empty() || std::ranges::any_of(layers, named)) continue;
        std::vector<std::string_view> names;
        for (const layer_name& l : layers) names.push_back(l.name);
        base::refuse(base::unknown("layer", s.layers, names));
    }
    for (const layer_name& l : layers) {
        const bool own = l.kept || std::ranges::any_of(settings, [&](const setting& s) {
                             return !s.layers.empty() && base::glob_match(s.layers, l.name);
                         });
        if (own) p.apart.push_back({l.name, of_layer(&l)});
    }
    return p;
}

}  // namespace mx::lab
