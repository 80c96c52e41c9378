// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/fit/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "libmx/base/parallel.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/optimize/minimize.hpp"
#include "libmx/report/cells.hpp"

namespace mx::fit {
namespace {

// Huber's loss of r and its derivative.
std::pair<double, double> huber(double r, double threshold) {
    if (std::abs(r) <= threshold) return {r * r / 2, r};
    return {threshold * (std::abs(r) - threshold / 2), r > 0 ? threshold : -threshold};
}

// The objective: the mean of Huber's losses over the squared threshold, so that it is near 1.
// `weights`: how often each run counts.
class objective {
  public:
    objective(const law& of, std::span<const run> some, std::span<const double> weights,
              double threshold)
        : law_(of), weights_(weights), threshold_(threshold) {
        for (const run& r : some) some_.push_back(of.sample_of(r));
        total_ = std::accumulate(weights.begin(), weights.end(), 0.0);
    }

    double operator()(std::span<const double> x, std::span<double> gradient) const {
        std::vector<double> one(x.size());
        const law::place at = law_.place_of(x);
        std::fill(gradient.begin(), gradient.end(), 0);
        const double scale = 1 / (total_ * threshold_ * threshold_);
        double sum = 0;
        for (std::size_t i = 0; i < some_.size(); ++i) {
            if (weights_[i] == 0) continue;
            const double r = law_.log_loss(some_[i], at, one) - some_[i].loss;
            const auto [value, slope] = huber(r, threshold_);
            sum += weights_[i] * value;
            for (std::size_t k = 0; k < one.size(); ++k)
                gradient[k] += weights_[i] * slope * one[k];
        }
        for (double& g : gradient) g *= scale;
        return sum * scale;
    }

  private:
    const law& law_;
    std::vector<law::sample> some_;
    std::span<const double> weights_;
    double threshold_;
    double total_ = 0;
};

struct search {
    std::vector<double> at;
    double value = std::numeric_limits<double>::max();
    std::size_t starts = 0, reached = 0;
};

constexpr int most_evaluations = 1500;
constexpr double same_objective = 1e-6;  // relative

search search_from(const objective& f, const std::vector<std::vector<double>>& starts,
                   const fit_request& request) {
    std::vector<optimize::minimum> found(starts.size());
    base::parallel_for(starts.size(), request.threads, request.cancel, [&](auto i, int) {
        found[i] = optimize::minimize(std::cref(f), starts[i], most_evaluations);
    });
    search best;
    best.starts = starts.size();
    for (const optimize::minimum& m : found) {
        if (m.value < best.value) {
            best.value = m.value;
            best.at = m.at;
        }
    }
    for (const optimize::minimum& m : found) {
        if (m.value <= best.value * (1 + same_objective)) ++best.reached;
    }
    return best;
}

// The quantile `p` of sorted values, with linear interpolation.
double quantile(const std::vector<double>& sorted, double p) {
    const double at = p * static_cast<double>(sorted.size() - 1);
    const auto low = static_cast<std::size_t>(at);
    const std::size_t high = std::min(low + 1, sorted.size() - 1);
    return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

constexpr std::size_t least_resamples = 20;

template <typename Figure>
estimate estimate_of(const coefficients& best, const std::vector<coefficients>& samples,
                     Figure figure) {
    estimate e{figure(best), {}, {}};
    if (samples.size() < least_resamples) return e;
    std::vector<double> all;
    for (const coefficients& c : samples) all.push_back(figure(c));
    std::ranges::sort(all);
    e.low = quantile(all, 0.025);
    e.high = quantile(all, 0.975);
    return e;
}

// How often each of `count` runs is drawn in `count` draws.
std::vector<double> drawn(std::size_t count, std::uint64_t seed, std::uint64_t sample) {
    std::vector<double> times(count);
    const base::random_key key{seed, base::tensor_id("bootstrap") + sample};
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t word = base::random_u32(key, i);
        times[static_cast<std::size_t>(word * count >> 32)] += 1;
    }
    return times;
}

std::vector<coefficients> resampled(const law& of, std::span<const run> some,
                                    const std::vector<double>& from, const fit_request& request) {
    std::vector<coefficients> samples(request.resamples);
    base::parallel_for(samples.size(), request.threads, request.cancel, [&](auto i, int) {
        const std::vector<double> times = drawn(some.size(), request.seed, i);
        const objective f(of, some, times, request.threshold);
        // The best minimum of the sample may be another one, so the exponents start from other
        // values, too.
        optimize::minimum best;
        for (const double factor : {1.0, 0.7, 1.4}) {
            std::vector<double> start = from;
            start[3] += std::log(factor);
            start[4] += std::log(factor);
            optimize::minimum m = optimize::minimize(std::cref(f), start, most_evaluations);
            if (best.at.empty() || m.value < best.value) best = std::move(m);
        }
        samples[i] = of.at(best.at);
        if (request.on_fit) request.on_fit();
    });
    return samples;
}

void add_residuals(fitted& f, std::span<const run> some, form is) {
    std::vector<double> sizes;
    for (const run& r : some) {
        const double predicted_loss = predicted(is, f.of, r);
        f.residuals.push_back({predicted_loss, std::log(r.loss / predicted_loss), false});
        sizes.push_back(std::abs(f.residuals.back().log_ratio));
    }
    std::ranges::sort(sizes);
    // 1.4826: makes this the standard deviation of a normal distribution.
    f.spread = 1.4826 * quantile(sizes, 0.5);
    for (residual& r : f.residuals) r.far = r.log_ratio > 5 * f.spread && r.log_ratio > 1e-6;
}

void add_predictions(fitted& f, std::span<const run> some, const std::vector<coefficients>& samples,
                     const fit_request& request) {
    double most = 0;
    std::set<std::vector<double>> precisions;
    for (const run& r : some) {
        most = std::max(most, r.compute());
        precisions.insert(r.bits);
    }
    std::vector<double> budgets = request.compute;
    if (budgets.empty()) {
        for (const double factor : {1, 10, 100}) budgets.push_back(most * factor);
    }
    const double none = std::numeric_limits<double>::infinity();
    const auto loss_at = [&](const coefficients& c, double n, double d, const auto& bits) {
        run r;
        r.n = n;
        r.d = d;
        r.bits = bits;
        r.post_bits = none;
        return predicted(request.is, c, r);
    };
    for (const std::vector<double>& bits : precisions) {
        const auto best = [&](const coefficients& c) { return optimum_of(request.is, c, bits); };
        for (const double c : budgets) {
            prediction p{c, bits, {}, {}, {}, c > most};
            p.n = estimate_of(f.of, samples, [&](const auto& k) { return best(k).n_at(c); });
            p.d = estimate_of(f.of, samples, [&](const auto& k) { return best(k).d_at(c); });
            // For the size that the fit recommends: the uncertainty of its loss.
            p.loss = estimate_of(f.of, samples, [&](const auto& k) {
                return loss_at(k, p.n.value, p.d.value, bits);
            });
            f.predictions.push_back(std::move(p));
        }
        for (const auto& point : request.points) {
            const double n = point.first, d = point.second;
            prediction p{{}, bits, {n, {}, {}}, {d, {}, {}}, {}, 6 * n * d > most};
            p.loss =
                estimate_of(f.of, samples, [&](const auto& k) { return loss_at(k, n, d, bits); });
            f.predictions.push_back(std::move(p));
        }
    }
}

std::optional<prediction_check> check_of(const law& of, std::span<const run> some,
                                         const fit_request& request) {
    std::vector<run> sorted(some.begin(), some.end());
    std::ranges::stable_sort(sorted, std::less{}, &run::compute);
    const std::size_t from = sorted.size() - sorted.size() / 5;
    if (from < 2 * of.size() || sorted.size() - from < 3) return {};
    const std::span<const run> seen(sorted.data(), from);
    const std::vector<double> once(from, 1.0);
    const objective f(of, seen, once, request.threshold);
    const coefficients c = of.at(search_from(f, of.starts(), request).at);
    prediction_check said{from, sorted.size() - from, sorted[from].compute(), 0, 0, 0};
    for (std::size_t i = from; i < sorted.size(); ++i) {
        const double error = predicted(request.is, c, sorted[i]) / sorted[i].loss - 1;
        said.mean_error += error / static_cast<double>(said.of);
        said.mean_abs_error += std::abs(error) / static_cast<double>(said.of);
        said.largest_abs_error = std::max(said.largest_abs_error, std::abs(error));
    }
    return said;
}

}  // namespace

fitted fit_law(const runs& all, std::span<const run> some, const fit_request& request) {
    const law of(request.is, all, some);
    if (some.size() <= of.size()) {
        throw base::error(base::error_kind::input,
                          fmt::format("{} coefficients need more than {}", of.size(),
                                      report::plural(some.size(), "run")));
    }
    const auto vary = [&](double run::*size) {
        return std::ranges::any_of(some,
                                   [&](const run& r) { return r.*size != some.front().*size; });
    };
    if (!vary(&run::n) || !vary(&run::d)) {
        throw base::error(
            base::error_kind::input,
            fmt::format("all runs have the same {}: nothing can be said of its exponent",
                        vary(&run::n) ? "D" : "N"));
    }
    const std::vector<double> once(some.size(), 1.0);
    const objective f(of, some, once, request.threshold);
    const search best = search_from(f, of.starts(), request);

    fitted out;
    out.of = of.at(best.at);
    const double per_run = best.value * request.threshold * request.threshold;
    out.objective = request.sum ? per_run * static_cast<double>(some.size()) : per_run;
    out.starts = best.starts;
    out.reached = best.reached;
    const std::vector<coefficients> samples = resampled(of, some, best.at, request);
    out.resamples = samples.size();
    const auto figure = [&](auto member) {
        return estimate_of(out.of, samples, [&](const coefficients& c) { return c.*member; });
    };
    out.a = figure(&coefficients::a);
    out.b = figure(&coefficients::b);
    out.e = figure(&coefficients::e);
    out.alpha = figure(&coefficients::alpha);
    out.beta = figure(&coefficients::beta);
    out.c_post = figure(&coefficients::c_post);
    out.gamma_d = figure(&coefficients::gamma_d);
    out.gamma_n = figure(&coefficients::gamma_n);
    out.gamma_post = figure(&coefficients::gamma_post);
    for (std::size_t i = 0; i < all.bits.size(); ++i) {
        out.gamma.push_back(
            estimate_of(out.of, samples, [&](const coefficients& c) { return c.gamma[i]; }));
    }
    const auto best_at = [&](double optimum::*member) {
        return estimate_of(out.of, samples, [&](const coefficients& c) {
            return optimum_of(request.is, c, {}).*member;
        });
    };
    out.g = best_at(&optimum::g);
    out.n_exponent = best_at(&optimum::a);
    out.d_exponent = best_at(&optimum::b);
    add_residuals(out, some, request.is);
    add_predictions(out, some, samples, request);
    out.check = check_of(of, some, request);
    return out;
}

}  // namespace mx::fit
