// SPDX-License-Identifier: Apache-2.0
// Gradients of layers against central differences of the layer stated again in float64.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace mx::lab {

using doubles = std::vector<double>;

inline doubles wide(const std::vector<float>& x) { return {x.begin(), x.end()}; }

/// d f / d x by central differences.
inline doubles differences(doubles x, const std::function<double(const doubles&)>& f) {
    doubles d(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double h = 1e-5 * std::max(1.0, std::abs(x[i]));
        const double middle = x[i];
        x[i] = middle + h;
        const double above = f(x);
        x[i] = middle - h;
        const double below = f(x);
        x[i] = middle;
        d[i] = (above - below) / (2 * h);
    }
    return d;
}

/// The L2 distance relative to the exact gradient.
inline double distance(const std::vector<float>& own, const doubles& exact) {
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
        difference += std::pow(static_cast<double>(own[i]) - exact[i], 2);
        norm += exact[i] * exact[i];
    }
    return std::sqrt(difference / norm);
}

inline double dot(const doubles& a, const std::vector<float>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * static_cast<double>(b[i]);
    return sum;
}

}  // namespace mx::lab
