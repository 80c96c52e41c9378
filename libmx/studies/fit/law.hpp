// SPDX-License-Identifier: Apache-2.0
// Scaling laws: the loss as a function of parameters N and tokens D.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/studies/fit/runs.hpp"

namespace mx::fit {

enum class form : std::uint8_t { chinchilla, kaplan, precision };

struct form_row {
    std::string_view name;
    form is;
    std::string_view law;
    std::string_view source;
};

/// THE LIST of forms.
inline constexpr std::array forms{
    form_row{"chinchilla", form::chinchilla, "L = A/N^alpha + B/D^beta + E", "arXiv 2203.15556"},
    form_row{"kaplan", form::kaplan, "L = ((A/N)^(alpha/beta) + B/D)^beta + E",
             "arXiv 2001.08361, with a floor"},
    form_row{"precision", form::precision,
             "L = A/Neff^alpha + B/D^beta + E, Neff = N prod(1 - exp(-P/gamma))",
             "arXiv 2411.04330"},
};

/// The coefficients of a law. `gamma` has an entry per column of bits: the scale, in bits, of the
/// exponential loss of effective parameters.
struct coefficients {
    double a = 0, b = 0, e = 0, alpha = 0, beta = 0;
    std::vector<double> gamma;
    /// For quantization after training: C D^gamma_d / N^gamma_n exp(-P_post / gamma_post).
    double c_post = 0, gamma_d = 0, gamma_n = 0, gamma_post = 0;
};

/// The predicted logarithm of a loss and its gradient, in coordinates that suit the search:
/// logarithms of the terms at the geometric means of N and D (and of E), of the exponents, and of
/// the gammas. Starting points then do not depend on the units of N and D, all coefficients are
/// positive, and a and alpha, which are strongly correlated in the fit, become independent.
class law {
  public:
    law(form is, const runs& of, std::span<const run> centre);

    form is() const { return is_; }
    std::size_t size() const { return size_; }
    /// Precomputed values of a run and a place.
    struct sample {
        double n = 0, d = 0, loss = 0;  ///< logarithms; N and D over their means
        std::vector<double> bits;
        double post_bits = 0;
    };
    struct place {
        std::span<const double> x;
        double alpha = 0, beta = 0;
        std::vector<double> gamma;
    };
    sample sample_of(const run& r) const;
    place place_of(std::span<const double> x) const;
    /// log L of `r` at `p`. Writes its gradient in the coordinates unless `gradient` is empty.
    double log_loss(const sample& r, const place& p, std::span<double> gradient) const;

    coefficients at(std::span<const double> x) const;
    /// The coordinates of the starting points.
    std::vector<std::vector<double>> starts() const;

  private:
    form is_;
    std::size_t bits_, size_;
    bool post_;
    double ln_n_ = 0, ln_d_ = 0, ln_l_ = 0;  // means over the runs of logarithms
};

/// The loss predicted by a law with these coefficients.
double predicted(form is, const coefficients& c, const run& r);

/// The effective N at this precision divided by N; 1 for other forms.
double effective_share(const coefficients& c, std::span<const double> bits);

/// The minimum of the loss for 6 N D = C FLOP: N = g (C/6)^a, D = (C/6)^b / g, for runs with
/// precision `bits`.
struct optimum {
    double g = 0, a = 0, b = 0;
    double n_at(double compute) const;
    double d_at(double compute) const;
};
optimum optimum_of(form is, const coefficients& c, std::span<const double> bits);

}  // namespace mx::fit
