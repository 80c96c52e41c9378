// SPDX-License-Identifier: Apache-2.0
// THE LIST of studies, and of what each trains.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "libmx/base/suggest.hpp"
#include "libmx/experiments/study.hpp"

namespace mx::experiments {
namespace {

// Operands in bfloat16, as every paper's unquantized run has them.
constexpr std::string_view bf16_operands = "all=bf16";

// A recipe of R-MSE against loss, as it is called and as it is spelled; the twin differs from it in
// rounding or blocks alone.
struct named_recipe {
    std::string_view name, recipe, twin{};
    bool is_format = false;
};

constexpr std::array format_recipes{
    named_recipe{"E4M3", "mxfp8", "", true},  named_recipe{"E5M2", "mxfp8_e5m2", "", true},
    named_recipe{"E2M3", "mxfp6", "", true},  named_recipe{"E3M2", "mxfp6_e3m2", "", true},
    named_recipe{"E2M1", "mxfp4", "", true},  named_recipe{"E3M0", "mxfp4_e3m0", "", true},
    named_recipe{"INT8", "mxint8", "", true}, named_recipe{"INT4", "mxint4", "", true},
    named_recipe{"NVFP4", "nvfp4", "", true},
};

constexpr std::array rule_recipes{
    named_recipe{"E2M1 ceil", "mxfp4:scale=ceil"},
    named_recipe{"E2M1 rceil", "mxfp4:scale=rceil"},
    named_recipe{"E2M1 even", "mxfp4:scale=even"},
    named_recipe{"E2M1 even, Hadamard", "mxfp4:scale=even,transform=hadamard"},
    named_recipe{"E2M1 32x1", "mxfp4:block=32x1", "E2M1"},
    named_recipe{"E2M1, SR", "mxfp4:round=stochastic", "E2M1"},
    named_recipe{"E2M1 ceil, SR", "mxfp4:scale=ceil,round=stochastic", "E2M1 ceil"},
    named_recipe{"E2M1 even, SR", "mxfp4:scale=even,round=stochastic", "E2M1 even"},
};

constexpr std::array weight_recipes{
    named_recipe{"INT4 ceil", "mxint4:scale=ceil"},
    named_recipe{"INT4 rceil", "mxint4:scale=rceil"},
    named_recipe{"INT4 even", "mxint4:scale=even"},
    named_recipe{"E2M1 1x16", "mxfp4:block=1x16", "E2M1"},
    named_recipe{"E2M1 4x4", "mxfp4:block=4x4", "E2M1"},
    named_recipe{"E2M1, offset", "mxfp4:offset=fp16"},
    named_recipe{"INT4, offset", "mxint4:offset=fp16"},
};

constexpr std::array gradient_recipes{
    named_recipe{"E3M0 ceil", "mxfp4_e3m0:scale=ceil"},
    named_recipe{"E3M0, SR", "mxfp4_e3m0:round=stochastic", "E3M0"},
    named_recipe{"E3M0 ceil, SR", "mxfp4_e3m0:scale=ceil,round=stochastic", "E3M0 ceil"},
};

template <typename Recipes>
void add_varied(std::vector<configuration>& to, const std::string& group, operand varied,
                std::string_view baseline, std::string_view key, const Recipes& recipes) {
    for (const named_recipe& r : recipes) {
        configuration c{group, std::string(r.name),
                        fmt::format("{} {}={}", baseline, key, r.recipe), std::string(baseline)};
        c.varied = varied;
        c.recipe = r.recipe;
        c.is_format = r.is_format;
        c.twin = r.twin;
        to.push_back(std::move(c));
    }
}

std::vector<configuration> correlation_runs() {
    constexpr std::string_view mixed =
        "w=bf16 x=mxfp6:scale=even dy=mxfp4:scale=even,round=stochastic";
    std::vector<configuration> all;
    const auto add = [&](const char* group, operand varied, std::string_view baseline,
                         const char* key, const auto& recipes) {
        add_varied(all, group, varied, baseline, key, recipes);
    };
    add("weights", operand::weights, bf16_operands, "w", format_recipes);
    add("weights", operand::weights, bf16_operands, "w", rule_recipes);
    add("weights", operand::weights, bf16_operands, "w", weight_recipes);
    add("weights, X in MXFP6, dY in MXFP4", operand::weights, mixed, "w", format_recipes);
    add("activations", operand::activations, bf16_operands, "x", format_recipes);
    add("activations", operand::activations, bf16_operands, "x", rule_recipes);
    add("gradients", operand::gradients, bf16_operands, "dy", format_recipes);
    add("gradients", operand::gradients, bf16_operands, "dy", rule_recipes);
    add("gradients", operand::gradients, bf16_operands, "dy", gradient_recipes);
    return all;
}

constexpr std::array scale_rules{"floor", "ceil", "even"};
constexpr std::string_view drawn_key = ",round=stochastic";

std::string ruled(std::string_view format, std::string_view rule, std::string_view more = "") {
    return fmt::format("{}:scale={}{}", format, rule, more);
}

std::vector<configuration> recipes_runs() {
    const std::string baseline(bf16_operands);
    std::vector<configuration> all;
    const auto add = [&](std::string group, std::string name, std::string settings,
                         std::string source, std::string words = "", std::string twin = "") {
        configuration c{std::move(group), std::move(name), std::move(settings), baseline};
        c.source = std::move(source);
        c.published_words = std::move(words);
        c.twin = std::move(twin);
        all.push_back(std::move(c));
    };
    const std::string by_format = "floor, to nearest, all operands";
    for (const named_recipe& r : format_recipes) {
        const bool four = r.name == "E2M1";
        if (!four && r.recipe.find("fp8") == r.recipe.npos && r.recipe.find("fp6") == r.recipe.npos)
            continue;
        add(by_format, std::string(r.name), "all=" + ruled(r.recipe, "floor"), "Fig. 3",
            four ? "gap up to 0.5, growing" : "within 0.025");
    }
    // X, W and dY by rule, rounding and the format of dY.
    const std::string by_rule = "E2M1 for X and W";
    for (const std::string rule : scale_rules) {
        const std::string nearest = rule + ", to nearest", to_all = "all=" + ruled("mxfp4", rule);
        const auto dy = [&](const char* format, std::string_view more) {
            return fmt::format("{} dy={}", to_all, ruled(format, rule, more));
        };
        const bool floor = rule == "floor";
        add(by_rule, nearest, to_all, "Fig. 4a",
            floor            ? "worst of the three"
            : rule == "ceil" ? "second"
                             : "best of the three");
        add(by_rule, rule + ", SR of X and W",
            fmt::format("all={} dy={}", ruled("mxfp4", rule, drawn_key), ruled("mxfp4", rule)),
            "Fig. 4a", floor ? "worse, most of all" : "worse than to nearest", nearest);
        const std::string sr = rule + ", SR of dY";
        add(by_rule, sr, dy("mxfp4", drawn_key), "Fig. 4b",
            floor ? "not enough" : "as good as bf16", nearest);
        const char* const e3m0 = rule == "ceil" ? "good" : "far worse than E2M1";
        add(by_rule, rule + ", dY in E3M0", dy("mxfp4_e3m0", ""), "Fig. 5", e3m0, nearest);
        add(by_rule, rule + ", dY in E3M0, SR", dy("mxfp4_e3m0", drawn_key), "Fig. 5", e3m0, sr);
    }
    struct mixture {
        const char *name, *settings, *words, *later;
    };
    constexpr std::array mixtures{
        mixture{"E2M1, even, SR of dY", "all=mxfp4:scale=even dy=mxfp4:scale=even,round=stochastic",
                "gap 0.02", "fails"},
        mixture{"E2M1, ceil, dY in E3M0, SR",
                "all=mxfp4:scale=ceil dy=mxfp4_e3m0:scale=ceil,round=stochastic", "gap 0.02",
                "fails"},
        mixture{"E2M3, dY in E2M1, even, SR of dY",
                "all=mxfp6:scale=even dy=mxfp4:scale=even,round=stochastic", "", "holds"},
    };
    for (const mixture& m : mixtures) {
        if (*m.words == '\0') continue;
        add("4 bits from the start", m.name, m.settings, "Fig. 12", m.words);
        all.back().published = 0.02;
    }
    for (const mixture& m : mixtures) {
        add("from a trained network: after 80 % of the steps", m.name, m.settings, "Fig. 13",
            m.later);
        all.back().from = 0.8;
    }
    return all;
}

std::vector<configuration> hybrid_runs() {
    // Weights and activations (gradients as these), or forward only.
    struct pair {
        const char *weights, *activations;  // "": forward only
        std::optional<double> published;    // the 10 %-trimmed mean
        const char* words;                  // median / that mean (matched runs)
    };
    static constexpr std::array pairs{
        pair{"e4m3", "bf16", 0.0006, "+0.0004 / +0.0006 (80)"},
        pair{"e2m3", "bf16", 0.0006, "+0.0006 / +0.0006 (77)"},
        pair{"e5m2", "bf16", 0.0026, "+0.0022 / +0.0026 (78)"},
        pair{"e4m3", "", 0.0026, "+0.0021 / +0.0026 (74)"},
        pair{"e5m2", "", 0.0073, "+0.0067 / +0.0073 (74)"},
        pair{"e2m3", "", std::nullopt, ""},
        pair{"e2m3", "e2m3", 0.0077, "+0.0069 / +0.0077 (80)"},
        pair{"e3m2", "e2m3", 0.0095, "+0.0090 / +0.0095 (80)"},
        pair{"e4m3", "e4m3", 0.0159, "+0.0102 / +0.0159 (51)"},
        pair{"e3m2", "e3m2", 0.0483, "+0.0367 / +0.0483 (48)"},
        pair{"e4m3", "e5m2", 0.0407, "+0.0396 / +0.0407 (50)"},
        pair{"e2m3", "e4m3", 0.0544, "+0.0407 / +0.0544 (61)"},
        pair{"e2m3", "e5m2", 0.0476, "+0.0421 / +0.0476 (55)"},
        pair{"e5m2", "e5m2", 0.0687, "+0.0451 / +0.0687 (64)"},
        pair{"e2m3", "e3m2", 0.0396, "+0.0352 / +0.0396 (53)"},
        pair{"e5m2", "e4m3", 0.1687, "+0.0550 / +0.1687 (78)"},
    };
    constexpr std::string_view baseline = "vector=bf16 ln=bf16";
    const auto recipe = [](std::string_view element) {
        if (element == "bf16") return std::string(element);
        const char* const preset = element == "e4m3"   ? "mxfp8"
                                   : element == "e5m2" ? "mxfp8_e5m2"
                                   : element == "e2m3" ? "mxfp6"
                                                       : "mxfp6_e3m2";
        return fmt::format("{}:round=away", preset);
    };
    const auto capital = [](std::string text) {
        for (char& c : text) c = c == 'e' ? 'E' : c == 'm' ? 'M' : c;
        return text;
    };
    std::vector<configuration> all;
    for (const pair& p : pairs) {
        const std::string w = recipe(p.weights), x = recipe(p.activations);
        const bool forward = *p.activations == '\0';
        configuration c{
            "weights / activations, as the published code has it",
            capital(p.weights) + (forward ? ", forward only" : " / " + capital(p.activations)),
            forward ? fmt::format("{} forward={} vector-backward=fp32 "
                                  "ln-backward=fp32",
                                  baseline, w)
                    : fmt::format("{} w={} x={} dy={}", baseline, w, x, x),
            std::string(baseline)};
        c.published = p.published;
        c.published_words = p.words;
        all.push_back(std::move(c));
    }
    for (const char* element : {"e4m3", "e5m2", "e2m3"}) {
        const std::string r = recipe(element);
        all.push_back({"gains of norms quantized as well",
                       capital(element) + " / " + capital(element),
                       fmt::format("{} all={} ln-gain={}", baseline, r, r), std::string(baseline)});
    }
    return all;
}

std::vector<configuration> stages_runs() {
    const std::string baseline = "all=mxfp8";
    std::vector<configuration> all;
    for (const char* rule : {"even", "floor"}) {
        constexpr const char* all_three = "Fprop, Dgrad, Wgrad";
        const std::string r = ruled("mxfp4", rule);
        const auto add = [&](const char* name, const std::string& settings,
                             std::optional<double> published = {}, const char* words = "",
                             const char* twin = "") {
            configuration c{fmt::format("scales by {}", rule), name, settings, baseline};
            c.published = published;
            c.published_words = words;
            c.twin = twin;
            all.push_back(std::move(c));
        };
        const auto turned = [&](const char* transform, int size) {
            return fmt::format("all={},transform={},transform_size={}", r, transform, size);
        };
        add("bf16", "all=bf16");
        add("Fprop", fmt::format("{} forward={}", baseline, r), 0.085, "8 to 9 %");
        add("Fprop, Dgrad", fmt::format("{} forward={} dgrad-dy={} dgrad-w={}", baseline, r, r, r),
            0.105, "10 to 11 %", "Fprop");
        add(all_three, "all=" + r, 0.265, "26 to 27 %", "Fprop, Dgrad");
        add("SR of dY", fmt::format("all={} dy={}{}", r, r, drawn_key), {}, "never", all_three);
        add("random signs, 16", turned("random-hadamard", 16), {}, "never", all_three);
        add("random signs, 32", turned("random-hadamard", 32), {}, "", all_three);
        add("Hadamard, 16", turned("hadamard", 16), 0.085, "8 to 9 %", all_three);
        add("Hadamard, 32", turned("hadamard", 32), 0.085, "8 to 9 %", all_three);
        add("W in 32x32", fmt::format("all={} w={},block=32x32", r, r), {}, "", all_three);
    }
    return all;
}

constexpr std::array study_rows{
    study{"correlation", "R-MSE of operands against the gap of the loss", "Yang et al., figure 6",
          yardstick::gap, correlation_runs, ""},
    study{"recipes", "Scale rules and roundings in 4 bits", "Yang et al., figures 3, 4, 5, 12, 13",
          yardstick::gap, recipes_runs,
          "what Yang et al. report of Llama3 7B over 100 to 160 M tokens."},
    study{"hybrid", "Quantized weights with quantized activations", "Su et al., arXiv 2506.20752",
          yardstick::gap, hybrid_runs,
          "the final validation loss of Su et al.'s language models minus that of the unquantized "
          "one of the same size and data: median / 10 %-trimmed mean (runs). Other networks and "
          "other losses: signs and the order can be compared, sizes cannot."},
    study{"stages", "MXFP4 in one product after the other", "arXiv 2605.09825", yardstick::steps,
          stages_runs,
          "extra tokens to the target loss against FP8, Llama 3.1-8B. We do not know the scale "
          "rule of the paper."},
};

}  // namespace

std::span<const study> studies() { return study_rows; }

const study& study_named(std::string_view name) {
    return base::row_named(study_rows, "study", name);
}

}  // namespace mx::experiments
