// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/fit/law.hpp"

#include <algorithm>
#include <cmath>

namespace mx::fit {
namespace {

// The indices of the coordinates.
enum : std::size_t { at_u, at_v, at_e, at_alpha, at_beta, at_gamma };

// log(1 - exp(-z)) of positive z.
double log_kept(double z) {
    return z > 0.7 ? std::log1p(-std::exp(-z)) : std::log(-std::expm1(-z));
}

// log of the sum of exp(t); shares receives each term's part of the sum.
template <std::size_t N>
double log_sum(const std::array<double, N>& t, std::size_t count, std::array<double, N>& shares) {
    const double most = *std::max_element(t.begin(), t.begin() + count);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += shares[i] = std::exp(t[i] - most);
    for (std::size_t i = 0; i < count; ++i) shares[i] /= sum;
    return most + std::log(sum);
}

}  // namespace

law::law(form is, const runs& of, std::span<const run> centre)
    : is_(is), bits_(of.bits.size()), size_(at_gamma + bits_ + (of.post ? 4 : 0)), post_(of.post) {
    for (const run& r : centre) {
        ln_n_ += std::log(r.n);
        ln_d_ += std::log(r.d);
        ln_l_ += std::log(r.loss);
    }
    const auto count = static_cast<double>(std::max<std::size_t>(centre.size(), 1));
    ln_n_ /= count;
    ln_d_ /= count;
    ln_l_ /= count;
}

law::sample law::sample_of(const run& r) const {
    return {std::log(r.n) - ln_n_, std::log(r.d) - ln_d_, std::log(r.loss), r.bits, r.post_bits};
}

law::place law::place_of(std::span<const double> x) const {
    place p{x, std::exp(x[at_alpha]), std::exp(x[at_beta]), {}};
    for (std::size_t i = 0; i < bits_; ++i) p.gamma.push_back(std::exp(x[at_gamma + i]));
    return p;
}

double law::log_loss(const sample& r, const place& p, std::span<double> gradient) const {
    const std::span<const double> x = p.x;
    const double alpha = p.alpha, beta = p.beta, d = r.d;
    double n = r.n;
    for (std::size_t i = 0; i < bits_; ++i) {
        if (std::isfinite(r.bits[i])) n += log_kept(r.bits[i] / p.gamma[i]);
    }
    const double u = x[at_u] - alpha * n, v = x[at_v] - beta * d;
    std::array<double, 4> terms{u, v, x[at_e], 0}, shares{};
    std::size_t count = 3;
    const std::size_t post = at_gamma + bits_;
    const bool quantized_after = post_ && std::isfinite(r.post_bits);
    const double rate = quantized_after ? r.post_bits / std::exp(x[post + 3]) : 0;
    const double by_n = quantized_after ? std::exp(x[post + 1]) : 0;
    const double by_d = quantized_after ? std::exp(x[post + 2]) : 0;
    if (quantized_after) terms[count++] = x[post] - by_n * r.n + by_d * d - rate;
    // Kaplan's form adds the terms of N and D inside a power.
    std::array<double, 2> inner{u / beta, v / beta}, parts{};
    double within = 0;
    if (is_ == form::kaplan) {
        within = log_sum(inner, 2, parts);
        terms = {beta * within, x[at_e], 0, 0};
        count = 2;
    }
    const double value = log_sum(terms, count, shares);
    if (gradient.empty()) return value;
    double du = shares[0], dv = shares[1], de = shares[2], more_beta = 0;
    if (is_ == form::kaplan) {
        de = shares[1];
        du = shares[0] * parts[0];
        dv = shares[0] * parts[1];
        more_beta = shares[0] * (within - (parts[0] * u + parts[1] * v) / beta);
    }
    gradient[at_u] = du;
    gradient[at_v] = dv;
    gradient[at_e] = de;
    gradient[at_alpha] = -du * n * alpha;
    gradient[at_beta] = (more_beta - dv * d) * beta;
    for (std::size_t i = 0; i < bits_; ++i) {
        const double z = r.bits[i] / p.gamma[i];
        gradient[at_gamma + i] = std::isfinite(z) && z < 700 ? du * alpha * z / std::expm1(z) : 0;
    }
    if (post_) {
        const double share = quantized_after ? shares[3] : 0;
        gradient[post] = share;
        gradient[post + 1] = -share * by_n * r.n;
        gradient[post + 2] = share * by_d * d;
        gradient[post + 3] = share * rate;
    }
    return value;
}

coefficients law::at(std::span<const double> x) const {
    coefficients c;
    c.alpha = std::exp(x[at_alpha]);
    c.beta = std::exp(x[at_beta]);
    c.e = std::exp(x[at_e]);
    if (is_ == form::kaplan) {
        c.a = std::exp(x[at_u] / c.alpha + ln_n_);
        c.b = std::exp(x[at_v] / c.beta + ln_d_);
    } else {
        c.a = std::exp(x[at_u] + c.alpha * ln_n_);
        c.b = std::exp(x[at_v] + c.beta * ln_d_);
    }
    for (std::size_t i = 0; i < bits_; ++i) c.gamma.push_back(std::exp(x[at_gamma + i]));
    if (post_) {
        const std::size_t post = at_gamma + bits_;
        c.gamma_n = std::exp(x[post + 1]);
        c.gamma_d = std::exp(x[post + 2]);
        c.gamma_post = std::exp(x[post + 3]);
        c.c_post = std::exp(x[post] + c.gamma_n * ln_n_ - c.gamma_d * ln_d_);
    }
    return c;
}

std::vector<std::vector<double>> law::starts() const {
    std::vector<std::vector<double>> all;
    for (const double floor : {0.02, 0.2, 0.5, 0.8, 0.95}) {
        for (const double split : {0.2, 0.5, 0.8}) {
            for (const double alpha : {0.1, 0.2, 0.35, 0.6, 1.0}) {
                for (const double beta : {0.1, 0.2, 0.35, 0.6, 1.0}) {
                    std::vector<double> x(size_);
                    x[at_u] = ln_l_ + std::log((1 - floor) * split);
                    x[at_v] = ln_l_ + std::log((1 - floor) * (1 - split));
                    x[at_e] = ln_l_ + std::log(floor);
                    x[at_alpha] = std::log(alpha);
                    x[at_beta] = std::log(beta);
                    for (std::size_t i = 0; i < bits_; ++i) x[at_gamma + i] = std::log(2);
                    if (post_) {
                        const std::size_t post = at_gamma + bits_;
                        // A hundredth of the loss at 4 bits, if trained at as many bits.
                        x[post] = ln_l_ + std::log(0.01) + 2;
                        x[post + 1] = x[post + 2] = std::log(0.5);
                        x[post + 3] = std::log(2);
                    }
                    all.push_back(std::move(x));
                }
            }
        }
    }
    return all;
}

double effective_share(const coefficients& c, std::span<const double> bits) {
    double share = 1;
    for (std::size_t i = 0; i < c.gamma.size() && i < bits.size(); ++i) {
        share *= -std::expm1(-bits[i] / c.gamma[i]);
    }
    return share;
}

double predicted(form is, const coefficients& c, const run& r) {
    if (is == form::kaplan) {
        return std::pow(std::pow(c.a / r.n, c.alpha / c.beta) + c.b / r.d, c.beta) + c.e;
    }
    const double n = r.n * effective_share(c, r.bits);
    double loss = c.a / std::pow(n, c.alpha) + c.b / std::pow(r.d, c.beta) + c.e;
    if (c.c_post > 0 && std::isfinite(r.post_bits)) {
        loss += c.c_post * std::pow(r.d, c.gamma_d) / std::pow(r.n, c.gamma_n) *
                std::exp(-r.post_bits / c.gamma_post);
    }
    return loss;
}

double optimum::n_at(double compute) const { return g * std::pow(compute / 6, a); }
double optimum::d_at(double compute) const { return std::pow(compute / 6, b) / g; }

optimum optimum_of(form is, const coefficients& c, std::span<const double> bits) {
    optimum o;
    o.a = c.beta / (c.alpha + c.beta);
    o.b = 1 - o.a;
    const double s = c.alpha / c.beta;
    if (is == form::kaplan) {
        // The minimum of (A/N)^s + B/D for a given N D.
        o.g = std::exp((std::log(s) + s * std::log(c.a) - std::log(c.b)) / (1 + s));
    } else {
        const double a = std::log(c.a) - c.alpha * std::log(effective_share(c, bits));
        o.g = std::exp((std::log(s) + a - std::log(c.b)) / (c.alpha + c.beta));
    }
    return o;
}

}  // namespace mx::fit
