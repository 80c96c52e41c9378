// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/project/solve.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "libmx/base/status.hpp"
#include "libmx/optimize/minimize.hpp"

namespace mx::project {
namespace {

// The search uses logarithms of rates, and shares unchanged.
bool is_rate(const std::string& name) { return name.starts_with("fp"); }

class misfit {
  public:
    misfit(const model_shape& m, const assumptions& start, const std::vector<std::string>& free,
           std::vector<target_row> targets)
        : shape_(m), start_(start), free_(free), targets_(std::move(targets)) {}

    std::vector<double> from() const {
        std::vector<double> x;
        for (const std::string& name : free_) {
            const double value = parameter_of(shape_, start_, name);
            x.push_back(is_rate(name) ? std::log(value) : value);
        }
        return x;
    }

    assumptions at(std::span<const double> x) const {
        assumptions a = start_;
        for (std::size_t i = 0; i < free_.size(); ++i) {
            set_parameter(shape_, a, free_[i], value(x, i));
        }
        return a;
    }

    double value(std::span<const double> x, std::size_t i) const {
        return is_rate(free_[i]) ? std::exp(x[i]) : x[i];
    }

    // Central differences: the function is smooth and fast to compute, and their error of 1e-10 is
    // far below the digits of any speed-up.
    double operator()(std::span<const double> x, std::span<double> gradient) const {
        std::vector<double> y(x.begin(), x.end());
        constexpr double step = 1e-6;
        for (std::size_t i = 0; i < y.size(); ++i) {
            y[i] = x[i] + step;
            const double more = squares(y);
            y[i] = x[i] - step;
            gradient[i] = (more - squares(y)) / (2 * step);
            y[i] = x[i];
        }
        return squares(y);
    }

    std::vector<target_row>& targets() { return targets_; }

    // First in coarse units, in which the first steps are short; then in fine ones, for the last
    // digits.
    optimize::minimum search(std::vector<double> x) {
        optimize::minimum best;
        for (const double scale : {1.0, 1e2, 1e4}) {
            scale_ = scale;
            best = optimize::minimize(std::cref(*this), std::move(x), 5000, 100);
            x = best.at;
        }
        return best;
    }

  private:
    double squares(std::span<const double> x) const {
        const assumptions a = at(x);
        double sum = 0;
        for (const target_row& t : targets_) {
            const double r = std::log(project(shape_, a, t.of).speedup() / t.speedup);
            sum += scale_ * r * r;
        }
        return sum;
    }

    const model_shape& shape_;
    const assumptions& start_;
    const std::vector<std::string>& free_;
    std::vector<target_row> targets_;
    double scale_ = 1;
};

}  // namespace

solution solve(const model_shape& m, const assumptions& start, const std::vector<std::string>& free,
               const std::vector<target_row>& targets) {
    optimize::require_nlopt("mx study speedups --solve");
    std::vector<target_row> fitted;
    std::ranges::copy_if(targets, std::back_inserter(fitted),
                         [](const target_row& t) { return !t.check; });
    if (free.size() > fitted.size()) {
        base::refuse("--solve: {} free parameters, but only {} speed-ups to fit them to",
                     free.size(), fitted.size());
    }
    misfit f(m, start, free, fitted);
    const optimize::minimum best = f.search(f.from());
    solution s{f.at(best.at), {}};
    for (std::size_t i = 0; i < free.size(); ++i) {
        const double value = f.value(best.at, i);
        s.parameters.push_back({free[i], value, value, value});
    }
    // Every corner of the intervals that round to the figures.
    for (std::size_t corner = 0; corner < std::size_t{1} << fitted.size(); ++corner) {
        for (std::size_t i = 0; i < fitted.size(); ++i) {
            const double half = fitted[i].half_unit;
            f.targets()[i].speedup = fitted[i].speedup + (corner >> i & 1 ? half : -half);
        }
        const optimize::minimum other = f.search(best.at);
        for (std::size_t i = 0; i < free.size(); ++i) {
            const double value = f.value(other.at, i);
            s.parameters[i].low = std::min(s.parameters[i].low, value);
            s.parameters[i].high = std::max(s.parameters[i].high, value);
        }
    }
    return s;
}

}  // namespace mx::project
