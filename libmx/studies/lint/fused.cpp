// SPDX-License-Identifier: Apache-2.0
// Scales that should be equal and are not, or are equal and should not be.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "libmx/engine/fused.hpp"
#include "libmx/studies/lint/parts.hpp"

namespace mx::lint {
namespace {

using io::pairing;

struct partner {
    const pairing* of;
    std::size_t scale;
    float value;
};

// What a partner's values are multiplied by too much if the engine takes the largest stored scale.
double ratio_under_largest(const partner& p, float largest, bool divides) {
    const double r = static_cast<double>(largest) / static_cast<double>(p.value);
    return divides ? 1 / r : r;
}

std::string effect_words(const std::vector<partner>& all, bool divides, bool exact) {
    const float largest = std::ranges::max_element(all, {}, &partner::value)->value;
    double worst = 0;
    const partner* at = &all.front();
    for (const partner& p : all) {
        const double off = std::fabs(ratio_under_largest(p, largest, divides) - 1);
        if (off <= worst) continue;
        worst = off;
        at = &p;
    }
    // vLLM's and SGLang's modelopt.py and compressed_tensors_w4a4_nvfp4.py take the maximum of the
    // partners' scales as stored; FP8 is requantized under the largest.
    if (!exact) {
        return fmt::format(
            "vLLM and SGLang requantize all under the largest scale, up to {:.3g} times a "
            "partner's own",
            1 + worst);
    }
    return fmt::format(
        "vLLM and SGLang take the largest for all and multiply {} by {:.4g}: an R-MSE of {:.3g} % "
        "of its RMS",
        at->of->name, ratio_under_largest(*at, largest, divides), 100 * worst);
}

bool differ(const std::vector<partner>& all) {
    return std::ranges::any_of(all, [&](const partner& p) {
        return p.value != all.front().value && std::isfinite(p.value) && p.value > 0;
    });
}

void report_group(inspection& at, const std::string& name, const std::vector<partner>& all,
                  bool input) {
    if (all.size() < 2 || !differ(all)) return;
    std::string values;
    for (const partner& p : all) {
        values += fmt::format("{}{} {:.6g}", values.empty() ? "" : ", ", p.of->name, p.value);
    }
    const pairing& first = *all.front().of;
    const bool exact = first.tensor_scale.has_value();
    std::string effect =
        input ? std::string("engines take the largest of them for all: the others lose range")
              : effect_words(all, first.divides, exact);
    at.add(
        "fused-scales", input || !exact ? severity::warning : severity::error, all.front().scale,
        fmt::format("{} of {} differ: {}", input ? "input scales" : "tensor scales", name, values),
        std::move(effect),
        input ? "calibrate them together" : "quantize them under one tensor scale");
}

void fused_scales(inspection& at) {
    std::map<std::string, std::vector<partner>> tensors, inputs;
    for (const pairing& p : at.of.pairs.found) {
        const std::string module = module_of(p);
        const std::string name = engine::partner_name(module);
        if (name == module) continue;
        const bool whole = p.layout->block_cols == io::whole_matrix;
        if (const auto of = p.tensor_scale ? p.tensor_scale
                            : whole        ? std::optional(p.scales)
                                           : std::nullopt) {
            if (const auto value = at.number(*of)) tensors[name].push_back({&p, *of, *value});
        }
        if (p.input_scale) {
            const auto value = at.number(*p.input_scale);
            if (value) inputs[name].push_back({&p, *p.input_scale, *value});
        }
    }
    for (const auto& [name, all] : tensors) report_group(at, name, all, false);
    for (const auto& [name, all] : inputs) report_group(at, name, all, true);
}

// What scales are where nothing was measured: 1, or those of a largest magnitude of 1 under FP8,
// FP4 and NVFP4, as factors and as divisors.
bool is_default(float x) {
    constexpr std::array largest{1.0, 448.0, 6.0, 2688.0};
    return std::ranges::any_of(largest, [&](double m) {
        return x == static_cast<float>(m) || x == static_cast<float>(1 / m);
    });
}

void default_scales(inspection& at) {
    constexpr std::size_t several = 2;
    struct kind {
        std::set<float> values;
        std::set<std::string> modules;
        std::vector<std::size_t> defaults;
        std::size_t first = 0;
    };
    std::map<std::string, kind> kinds;  // "input scales of nvfp4"
    const auto see = [&](const pairing& p, std::size_t array, const char* what) {
        const auto value = at.number(array);
        if (!value || std::isnan(*value)) return;
        kind& k = kinds[fmt::format("{} of {}", what, p.layout->name)];
        if (k.modules.empty()) k.first = array;
        k.values.insert(*value);
        k.modules.insert(engine::partner_name(module_of(p)));
        if (is_default(*value)) k.defaults.push_back(array);
    };
    for (const pairing& p : at.of.pairs.found) {
        if (p.input_scale) see(p, *p.input_scale, "input scales");
        if (p.tensor_scale) see(p, *p.tensor_scale, "tensor scales");
        if (p.layout->block_cols == io::whole_matrix && !p.tensor_scale) {
            see(p, p.scales, "scales");
        }
    }
    for (const auto& [name, k] : kinds) {
        const bool input = name.starts_with("input");
        const char* const effect = input ? "activations are clamped, or lose most of their bits"
                                         : "values are off by the scale, or use few of the codes";
        if (k.values.size() == 1 && k.modules.size() >= several && !k.defaults.empty()) {
            at.add("default-scale", severity::warning, k.first,
                   fmt::format("the {} of all {} layers are {:g}, as before a calibration", name,
                               k.modules.size(), *k.values.begin()),
                   effect, "calibrate the model");
        } else if (k.values.size() > 1) {
            for (const std::size_t array : k.defaults) {
                at.add(
                    "default-scale", severity::warning, array,
                    fmt::format("it is {:g}, as before a calibration; the {} are {:.3g} to {:.3g}",
                                *at.number(array), name, *k.values.begin(), *k.values.rbegin()),
                    effect, "calibrate the layer: no sample may have reached it");
            }
        }
    }
    // Block scales of one tensor that are all 1.
    constexpr std::size_t enough = 64;
    for (const pairing& p : at.of.pairs.found) {
        if (p.layout->block_cols == io::whole_matrix || p.outer_scales) continue;
        const bool e8m0 = p.layout->scales == io::scale_array::e8m0;
        const bool bytes = at.info(p.scales).type == tensor::dtype::u8;
        if (bytes && !e8m0) continue;
        const std::vector<float> values = at.numbers(p.scales, checkpoint::most_scale_bytes);
        const float one = bytes ? 127.0f : 1.0f;
        if (values.size() < enough ||
            std::ranges::any_of(values, [&](float x) { return x != one; })) {
            continue;
        }
        at.add("default-scale", severity::warning, p.scales,
               fmt::format("all {} are 1", values.size()), "values are those of the codes",
               "quantize the tensor again");
    }
}

}  // namespace

void check_fused(inspection& at) {
    fused_scales(at);
    default_scales(at);
}

}  // namespace mx::lint
