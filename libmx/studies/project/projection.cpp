// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/project/projection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/base/suggest.hpp"

namespace mx::project {
namespace {

constexpr const char* yang = "Yang et al., An Empirical Study of Microscaling Formats, figure 2";

// Fitted to Yang's figures by --solve; a unit test repeats both fits.
constexpr assumptions yang_fit{.shares_by_flop = false,
                               .mlp = 0.799335672,
                               .attention = 0.0494589442,
                               .fp8 = {1.973069307, 1.973069307},
                               .mixed_is = mixed_rule::share,
                               .mixed = 0.266240439,
                               .overhead = 0.0503663004};
constexpr assumptions yang_shapes{.fp8 = {2.046564641, 1.129468414},
                                  .fp4_is = fp4_rule::square,
                                  .mixed_is = mixed_rule::share,
                                  .mixed = 0.268575973,
                                  .overhead = 0.0503663004};

constexpr std::array<std::string_view, 14> parameter_names{
    "mlp",     "attention",     "rest", "fp8",     "fp8.mlp",       "fp8.attention", "fp6",
    "fp6.mlp", "fp6.attention", "fp4",  "fp4.mlp", "fp4.attention", "mixed",         "overhead"};

[[noreturn]] void unknown_parameter(const std::string& name) {
    base::refuse(
        base::unknown("parameter", name, {parameter_names.begin(), parameter_names.end()}));
}

// The meaning of "fp8", "fp8.mlp" and "fp8.attention": an array, and the classes in it.
struct rate_place {
    unit is = unit::bf16;
    bool mlp = true, attention = true;
};
rate_place place_of(const std::string& name) {
    const std::size_t dot = name.find('.');
    const auto at = std::ranges::find(unit_names, name.substr(0, dot));
    const std::string of = dot == std::string::npos ? "" : name.substr(dot + 1);
    if (at == unit_names.end() || at == unit_names.begin() ||
        (!of.empty() && of != "mlp" && of != "attention")) {
        unknown_parameter(name);
    }
    return {static_cast<unit>(at - unit_names.begin()), of != "attention", of != "mlp"};
}

double fp4_of(const assumptions& a, std::size_t of) {
    switch (a.fp4_is) {
        case fp4_rule::twice:
            return 2 * a.fp8[of];
        case fp4_rule::square:
            return a.fp8[of] * a.fp8[of];
        case fp4_rule::given:
            break;
    }
    return a.fp4[of];
}

double fp6_of(const assumptions& a, std::size_t of) {
    const double fp8 = a.fp8[of], fp4 = fp4_of(a, of);
    switch (a.fp6_is) {
        case fp6_rule::mean:
            return (fp8 + fp4) / 2;
        case fp6_rule::geometric:
            return std::sqrt(fp8 * fp4);
        case fp6_rule::as_fp8:
            return fp8;
        case fp6_rule::as_fp4:
            return fp4;
        case fp6_rule::given:
            break;
    }
    return a.fp6[of];
}

// The time of a class of linear layers relative to bf16.
double linear_time(const assumptions& a, std::size_t of, const configuration& c) {
    const auto time = [&](unit u) { return 1 / rate_of(a, of, u, c.fp6); };
    const auto wider = [](unit x, unit y) { return std::min(x, y); };
    const auto narrower = [](unit x, unit y) { return std::max(x, y); };
    const unit w = c.weights.is, x = c.activations.is, g = c.gradients.is;
    if (a.mixed_is == mixed_rule::share && c.mixed() && !c.forward_only) {
        return a.mixed * time(wider(w, wider(x, g))) +
               (1 - a.mixed) * time(narrower(w, narrower(x, g)));
    }
    // A narrow operand does not speed up the product with bf16: there is no such instruction.
    const auto product = [&](unit p, unit q) {
        const bool slow = a.mixed_is != mixed_rule::narrow || wider(p, q) == unit::bf16;
        return time(slow ? wider(p, q) : narrower(p, q));
    };
    const double backward = c.forward_only ? 2.0 : product(g, w) + product(g, x);
    return (product(x, w) + backward) / 3;
}

}  // namespace

const std::array<profile, 5> profiles{
    profile{"yang-fit", "Yang's figures for Llama 3 405B: one rate for all linear layers", yang,
            yang_fit, "mlp,attention,fp8,mixed,overhead"},
    profile{"yang-shapes", "the same with time by FLOP, and a rate for each class of layers", yang,
            yang_shapes, "fp8.mlp,fp8.attention,mixed,overhead"},
    profile{"b200",
            "NVIDIA B200: peak rates; FP6 as FP8",
            "NVIDIA Blackwell datasheet, dense: BF16 2.25, FP8 and FP6 4.5, FP4 9 PFLOPS",
            {.fp6_is = fp6_rule::as_fp8},
            "mixed,overhead",
            true},
    profile{"mi355x",
            "AMD MI355X: peak rates; FP6 as FP4",
            "AMD Instinct MI355X data sheet, dense: BF16 2.5, FP8 5, FP6 and FP4 10 PFLOPS",
            {.fp6_is = fp6_rule::as_fp4},
            "mixed,overhead",
            true},
    profile{"ideal",
            "FP8 twice and FP4 four times bf16, FP6 between; nothing else costs",
            "",
            {.mixed_is = mixed_rule::narrow},
            "mlp,attention,mixed,overhead",
            true},
};

std::array<double, 3> shares_of(const model_shape& m, const assumptions& a) {
    if (!a.shares_by_flop) return {a.mlp, a.attention, 1 - a.mlp - a.attention};
    const std::array<double, 4> flop = forward_flop(m, a.sequence, a.causal);
    const double linear = flop[0] + flop[1], all = linear + flop[2] + flop[3];
    const double rest = a.rest.value_or((flop[2] + flop[3]) / all);
    return {(1 - rest) * flop[0] / linear, (1 - rest) * flop[1] / linear, rest};
}

double rate_of(const assumptions& a, std::size_t of, unit is, fp6_rate fp6) {
    switch (is) {
        case unit::bf16:
            return 1;
        case unit::fp8:
            return a.fp8[of];
        case unit::fp6:
            if (fp6 == fp6_rate::own) return fp6_of(a, of);
            return fp6 == fp6_rate::fp8 ? a.fp8[of] : fp4_of(a, of);
        case unit::fp4:
            break;
    }
    return fp4_of(a, of);
}

projection project(const model_shape& m, const assumptions& a, const configuration& c) {
    const std::array<double, 3> shares = shares_of(m, a);
    projection p;
    p.mlp = shares[0] * (c.mlp ? linear_time(a, 0, c) : 1);
    p.attention = shares[1] * (c.attention ? linear_time(a, 1, c) : 1);
    p.rest = shares[2];
    p.overhead = c.mixed() ? a.overhead : 0;
    return p;
}

void set_parameter(const model_shape& m, assumptions& a, const std::string& name, double x) {
    if (name == "mlp" || name == "attention") {
        const std::array<double, 3> shares = shares_of(m, a);
        a.mlp = shares[0];
        a.attention = shares[1];
        a.shares_by_flop = false;
        (name == "mlp" ? a.mlp : a.attention) = x;
    } else if (name == "rest") {
        if (!a.shares_by_flop) base::refuse("rest goes with shares by FLOP: --shares flop");
        a.rest = x;
    } else if (name == "mixed") {
        a.mixed_is = mixed_rule::share;
        a.mixed = x;
    } else if (name == "overhead") {
        a.overhead = x;
    } else {
        const rate_place p = place_of(name);
        // A value that the other class had from a rule becomes a number.
        if (p.is == unit::fp4 && a.fp4_is != fp4_rule::given) {
            a.fp4 = {fp4_of(a, 0), fp4_of(a, 1)};
            a.fp4_is = fp4_rule::given;
        }
        if (p.is == unit::fp6 && a.fp6_is != fp6_rule::given) {
            a.fp6 = {fp6_of(a, 0), fp6_of(a, 1)};
            a.fp6_is = fp6_rule::given;
        }
        auto& rates = p.is == unit::fp8 ? a.fp8 : p.is == unit::fp6 ? a.fp6 : a.fp4;
        if (p.mlp) rates[0] = x;
        if (p.attention) rates[1] = x;
    }
}

double parameter_of(const model_shape& m, const assumptions& a, const std::string& name) {
    const std::array<double, 3> shares = shares_of(m, a);
    if (name == "mlp") return shares[0];
    if (name == "attention") return shares[1];
    if (name == "rest") return shares[2];
    if (name == "mixed") return a.mixed;
    if (name == "overhead") return a.overhead;
    const rate_place p = place_of(name);
    return rate_of(a, p.mlp ? 0 : 1, p.is, fp6_rate::own);
}

std::vector<std::string> parameters_in_use(const assumptions& a) {
    std::vector<std::string> names{"mlp", "attention"};
    const auto add = [&](const char* name, const std::array<double, 2>& rates) {
        if (rates[0] == rates[1]) {
            names.emplace_back(name);
        } else {
            names.push_back(fmt::format("{}.mlp", name));
            names.push_back(fmt::format("{}.attention", name));
        }
    };
    add("fp8", a.fp8);
    if (a.fp6_is == fp6_rule::given) add("fp6", a.fp6);
    if (a.fp4_is == fp4_rule::given) add("fp4", a.fp4);
    if (a.mixed_is == mixed_rule::share) names.emplace_back("mixed");
    if (a.overhead != 0) names.emplace_back("overhead");
    return names;
}

void check(const model_shape& m, const assumptions& a) {
    for (const double share : shares_of(m, a)) {
        if (!(share >= 0 && share <= 1)) {
            base::refuse("shares of the step must be 0 to 1 and not more than 1 together");
        }
    }
    for (std::size_t of = 0; of < 2; ++of) {
        for (const unit u : {unit::fp8, unit::fp6, unit::fp4}) {
            const double rate = rate_of(a, of, u, fp6_rate::own);
            if (!(rate > 0 && rate < 1e6)) {
                base::refuse("the rate of {} must be above 0 and below 10^6",
                             unit_names[static_cast<std::size_t>(u)]);
            }
        }
    }
    if (a.mixed_is == mixed_rule::share && !(a.mixed >= 0 && a.mixed <= 1)) {
        base::refuse("--mixed: a share is 0 to 1");
    }
    if (!(a.overhead >= 0 && a.overhead < 1e6)) base::refuse("--overhead must be 0 or more");
}

}  // namespace mx::project
