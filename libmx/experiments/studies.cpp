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

// A recipe of R-MSE against loss, as it is called and as it is spelled; `twin` where it only draws
// what that one rounds to nearest.
struct named_recipe {
    std::string_view name, recipe, twin = "";
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
    named_recipe{"E2M1, SR", "mxfp4:round=stochastic", "E2M1"},
    named_recipe{"E2M1 ceil, SR", "mxfp4:scale=ceil,round=stochastic", "E2M1 ceil"},
    named_recipe{"E2M1 even, SR", "mxfp4:scale=even,round=stochastic", "E2M1 even"},
};

constexpr std::array weight_recipes{
    named_recipe{"INT4 ceil", "mxint4:scale=ceil"},
    named_recipe{"INT4 even", "mxint4:scale=even"},
    named_recipe{"E2M1 1x16", "mxfp4:block=1x16"},
    named_recipe{"E2M1 4x4", "mxfp4:block=4x4"},
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

std::vector<configuration> correlation() {
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

constexpr std::array<study, 1> rows{
    study{"correlation", "R-MSE of tensors against the gap of the loss", "Yang et al., figure 6",
          yardstick::gap, correlation, ""},
};

}  // namespace

std::span<const study> studies() { return rows; }

const study& study_named(std::string_view name) { return base::row_named(rows, "study", name); }

}  // namespace mx::experiments
