// SPDX-License-Identifier: Apache-2.0
// A model of the time of a step under a configuration, from shares and rates. The time under bf16
// is 1.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/studies/project/configurations.hpp"
#include "libmx/studies/project/model_shapes.hpp"

namespace mx::project {

/// Rates of FP4 and FP6 as functions of other rates, unless given as numbers.
enum class fp4_rule : std::uint8_t { given, twice, square };
enum class fp6_rule : std::uint8_t { given, mean, geometric, as_fp8, as_fp4 };
inline constexpr std::array<std::string_view, 3> fp4_rule_names{"given", "double", "square"};
inline constexpr std::array<std::string_view, 5> fp6_rule_names{"given", "mean", "geometric", "fp8",
                                                                "fp4"};

/// The rate of a product of two formats: that of the wider operand, that of the narrower one, or a
/// mixture: a share of the linear layers' time at the wider format's rate and the rest at the
/// narrower one's.
enum class mixed_rule : std::uint8_t { wide, narrow, share };
inline constexpr std::array<std::string_view, 3> mixed_rule_names{"wide", "narrow", "share"};

/// The assumptions of a projection. Arrays: linear layers of the MLP, of attention. Rates are
/// multiples of bf16's and include quantization.
struct assumptions {
    bool shares_by_flop = true;
    double mlp = 0, attention = 0;    ///< of the bf16 step, where shares are not by FLOP
    std::optional<double> rest = {};  ///< with shares by FLOP: all but the linear layers
    bool causal = true;
    double sequence = default_sequence;
    std::array<double, 2> fp8{2, 2}, fp6{3, 3}, fp4{4, 4};
    fp4_rule fp4_is = fp4_rule::twice;
    fp6_rule fp6_is = fp6_rule::mean;
    mixed_rule mixed_is = mixed_rule::wide;
    double mixed = 0;     ///< the share, where mixed_is says so
    double overhead = 0;  ///< of the bf16 step, added where a tensor is needed in two formats
};

struct profile {
    std::string_view name;
    std::string_view summary;
    std::string_view source;
    assumptions assumes;
    std::string_view free;  ///< what --solve fits without --free
    bool peak = false;      ///< rates are those of the units, not of a step
};

/// THE LIST of profiles.
extern const std::array<profile, 5> profiles;

/// Shares of the bf16 step: MLP, attention's linear layers, everything else.
std::array<double, 3> shares_of(const model_shape& m, const assumptions& a);

/// The rate of a unit for a class of linear layers: 0 MLP, 1 attention.
double rate_of(const assumptions& a, std::size_t of, unit is, fp6_rate fp6);

struct projection {
    double mlp = 0, attention = 0, rest = 0, overhead = 0;  ///< time, of the bf16 step
    double time() const { return mlp + attention + rest + overhead; }
    double speedup() const { return 1 / time(); }
};
projection project(const model_shape& m, const assumptions& a, const configuration& c);

/// Sets an assumption by name: mlp, attention, rest, fp8, fp6, fp4 (for both classes, or with the
/// suffix .mlp or .attention), mixed, overhead. The number replaces a rule. Throws base::error
/// (usage) for an unknown name.
void set_parameter(const model_shape& m, assumptions& a, const std::string& name, double x);
double parameter_of(const model_shape& m, const assumptions& a, const std::string& name);
/// The parameters that a projection depends on under these rules.
std::vector<std::string> parameters_in_use(const assumptions& a);

/// Throws base::error (usage) if shares, rates or the overhead are out of range.
void check(const model_shape& m, const assumptions& a);

}  // namespace mx::project
