// SPDX-License-Identifier: Apache-2.0
// Which parts of a step are quantized, and to which formats.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mx::project {

/// Classes of number formats with a matrix-unit rate.
enum class unit : std::uint8_t { bf16, fp8, fp6, fp4 };
inline constexpr std::array<std::string_view, 4> unit_names{"bf16", "fp8", "fp6", "fp4"};

/// The format of an operand.
struct operand_format {
    std::string name;
    unit is = unit::bf16;
    double bits = 16;  ///< an element, with its part of scales
};

/// The rate of FP6 products.
enum class fp6_rate : std::uint8_t { own, fp8, fp4 };

struct configuration {
    std::string name;  ///< canonical
    operand_format weights, activations, gradients;
    bool mlp = true, attention = true;  ///< whose linear layers are quantized
    bool forward_only = false;          ///< Dgrad and Wgrad stay in bf16
    fp6_rate fp6 = fp6_rate::own;

    /// Whether the operands of a product have different rates, or products do.
    bool mixed() const;
};

/// Parses "FORMAT" or "WEIGHTS/ACTIVATIONS/GRADIENTS", then ":" and a comma-separated list of
/// "scope=mlp|attention", "products=fprop", "fp6=fp8|fp4". Formats: bf16, fp8 (one scale per
/// tensor) and the block formats with floating-point elements. Throws base::error (usage).
configuration parse_configuration(const std::string& text);

/// The configurations of Yang et al., figure 2, with its speed-ups over bf16 for Llama 3 405B.
struct published_row {
    std::string_view configuration;
    double speedup;
};
inline constexpr std::array published_rows{
    published_row{"mxfp4", 2.73},
    published_row{"mxfp4:scope=mlp", 2.48},
    published_row{"fp8", 1.72},
    published_row{"mxfp6/mxfp6/mxfp4", 2.31},
    published_row{"mxfp6/mxfp6/mxfp4:fp6=fp8", 2.11},
    published_row{"mxfp6/mxfp6/mxfp4:fp6=fp4", 2.40},
};

/// Speed-ups to explain: a table with columns configuration and speedup.
struct target_row {
    configuration of;
    double speedup = 0;
    double half_unit = 0;  ///< half of the last digit that the table gives
    bool check = false;    ///< compared, not fitted to
};
std::vector<target_row> read_targets(const std::string& path);

}  // namespace mx::project
