// SPDX-License-Identifier: Apache-2.0
#include "libmx/optimize/minimize.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "libmx/base/status.hpp"

#if defined(MX_HAS_NLOPT)
#include <nlopt.h>
#endif

namespace mx::optimize {

#if defined(MX_HAS_NLOPT)
namespace {

struct call {
    const smooth_function* f;
    double within;
    int evaluations = 0;
};

double call_back(unsigned n, const double* x, double* gradient, void* data) {
    call& c = *static_cast<call*>(data);
    ++c.evaluations;
    constexpr double never = std::numeric_limits<double>::max();
    std::vector<double> unused;
    if (gradient == nullptr) {
        unused.resize(n);
        gradient = unused.data();
    }
    for (unsigned i = 0; i < n; ++i) {
        if (std::abs(x[i]) > c.within || std::isnan(x[i])) return never;
    }
    const double value = (*c.f)({x, n}, {gradient, n});
    return std::isfinite(value) ? value : never;
}

}  // namespace

minimum minimize(const smooth_function& f, std::vector<double> start, int evaluations,
                 double within) {
    call c{&f, within};
    minimum best{std::move(start), 0, 0};
    const auto n = static_cast<unsigned>(best.at.size());
    std::vector<double> gradient(n);
    best.value = call_back(n, best.at.data(), gradient.data(), &c);
    std::vector<double> x = best.at;
    // Restarted: L-BFGS drops the curvature from points far away.
    constexpr int most_rounds = 20;
    for (int round = 0; round < most_rounds && c.evaluations < evaluations; ++round) {
        const std::unique_ptr<nlopt_opt_s, decltype(&nlopt_destroy)> by(
            nlopt_create(NLOPT_LD_LBFGS, n), nlopt_destroy);
        nlopt_set_min_objective(by.get(), call_back, &c);
        nlopt_set_maxeval(by.get(), evaluations - c.evaluations);
        nlopt_set_ftol_rel(by.get(), 1e-15);
        nlopt_set_xtol_rel(by.get(), 1e-13);
        double value = 0;
        // A failure is a result, too: it found no better point, as when rounding decides.
        nlopt_optimize(by.get(), x.data(), &value);
        value = call_back(n, x.data(), gradient.data(), &c);
        const bool gained = value < best.value - 1e-13 * std::abs(best.value);
        if (value < best.value) best = {x, value, 0};
        if (!gained) break;
    }
    best.evaluations = c.evaluations;
    return best;
}

std::string nlopt_version() {
    int major = 0, minor = 0, patch = 0;
    ::nlopt_version(&major, &minor, &patch);
    return fmt::format("{}.{}.{}", major, minor, patch);
}

void require_nlopt(const std::string&) {}
#else
minimum minimize(const smooth_function&, std::vector<double>, int, double) {
    require_nlopt("a fit");
    return {};
}

std::string nlopt_version() { return {}; }

void require_nlopt(const std::string& purpose) {
    throw base::error(base::error_kind::unavailable,
                      fmt::format("{} needs NLopt, which this mx was built without: install "
                                  "libnlopt-dev and build mx again",
                                  purpose));
}
#endif

}  // namespace mx::optimize
