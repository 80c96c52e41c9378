// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "libmx/report/cells.hpp"

namespace mx::policy {
namespace {

std::optional<double> defined(double x) {
    if (std::isnan(x)) return {};
    return x;
}

bool at_random(const figure_input& in) {
    return in.under.under->recipe.round == format::rounding::stochastic;
}

std::optional<double> underflow(const figure_input& in) {
    if (at_random(in)) return {};
    return defined(in.under.underflow_rate);
}

constexpr std::array rows{
    figure{"saturated_block_rate", figure_unit::share,
           "share of the blocks whose non-zero elements all become the largest value",
           "has {} of its blocks saturated",
           [](const figure_input& in) { return defined(in.under.saturated_block_rate); }},
    figure{"collapsed_block_rate", figure_unit::share,
           "share of the blocks whose non-zero elements all become one magnitude",
           "has {} of its blocks collapsed to one magnitude",
           [](const figure_input& in) { return defined(in.under.collapsed_block_rate); }},
    figure{"clamp_rate", figure_unit::share, "share of the elements that clamping changes",
           "has {} of its elements clamped",
           [](const figure_input& in) { return defined(in.under.clamp_rate); }},
    figure{"underflow_rate", figure_unit::share,
           "share of the elements that become zero; not judged under stochastic rounding, which "
           "keeps them in the mean",
           "loses {} of its elements to zero", underflow},
    figure{"underflow_over_normal", figure_unit::share,
           "underflow_rate above that of the recipe on normal data",
           "loses {} more of its elements to zero than normal data would",
           [](const figure_input& in) -> std::optional<double> {
               const auto u = underflow(in);
               if (!u) return {};
               return *u - in.normal.underflow_rate;
           }},
    figure{
        "underflow_energy", figure_unit::share,
        "share of the tensor's squares in elements that become zero; not judged under stochastic "
        "rounding, nor in results without the parts of the error (--decompose)",
        "loses {} of its energy in elements that become zero",
        [](const figure_input& in) -> std::optional<double> {
            if (at_random(in)) return {};
            return defined(in.under.underflow_error_share * in.under.nrmse * in.under.nrmse);
        }},
    figure{"gain_error", figure_unit::share,
           "distance of the gain from the recipe's on normal data, beyond what the rounding of the "
           "largest elements explains: nrmse * crest_factor / sqrt(elements)",
           "is scaled by a factor {} off",
           [](const figure_input& in) -> std::optional<double> {
               const metrics::row& r = in.under;
               if (std::isnan(r.gain) || largest_share(in) >= in.dominated) return {};
               const double chance =
                   r.nrmse * r.crest_factor / std::sqrt(static_cast<double>(in.of.elements));
               return std::max(std::abs(r.gain - in.normal.gain) - chance, 0.0);
           }},
    figure{"sqnr_below_normal", figure_unit::decibels,
           "how far the SQNR is below that of the recipe on normal data; not judged if one "
           "element has most of the squares",
           "has an SQNR {} below that on normal data",
           [](const figure_input& in) -> std::optional<double> {
               if (std::isnan(in.under.sqnr_db) || largest_share(in) >= in.dominated) return {};
               return in.normal.sqnr_db - in.under.sqnr_db;
           }},
    figure{"error_of_spread", figure_unit::share,
           "RMS error over the standard deviation of the values: for gains that are close "
           "together",
           "has an error of {} of the spread of its values",
           [](const figure_input& in) -> std::optional<double> {
               return defined(in.under.spread_error);
           }},
    figure{"poisoned", figure_unit::count, "finite elements that become NaN with their block",
           "has {} that become NaN with their block",
           [](const figure_input& in) -> std::optional<double> {
               return static_cast<double>(in.under.poisoned);
           }},
};

}  // namespace

double largest_share(const figure_input& in) {
    const double crest = in.under.crest_factor;
    return crest * crest / static_cast<double>(in.of.elements);
}

std::span<const figure> figures() { return rows; }

const figure* find_figure(std::string_view name) {
    const auto at =
        std::find_if(rows.begin(), rows.end(), [&](const figure& f) { return f.name == name; });
    return at == rows.end() ? nullptr : &*at;
}

std::string value_text(const figure& f, double value) {
    switch (f.unit) {
        case figure_unit::share:
            return report::percent_text(value) + " %";
        case figure_unit::decibels:
            return report::fixed_text(value, 2) + " dB";
        case figure_unit::count:
            return report::plural(std::llround(value), "element");
    }
    return {};
}

std::string describe(const figure& f, double value) {
    return fmt::format(fmt::runtime(f.words), value_text(f, value));
}

double error_over_normal(const analysis::result& r, const metrics::row& normal) {
    if (lossless(r) || std::isnan(r.nrmse)) return 0;
    const double ratio = r.nrmse / normal.nrmse;
    return ratio * ratio;
}

}  // namespace mx::policy
