// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/compare_values.hpp"

#include <algorithm>
#include <cmath>

#include "libmx/base/bits.hpp"

namespace mx::diff {
namespace {

constexpr std::size_t lane_count = 8;

struct lanes {
    double a2[lane_count]{}, b2[lane_count]{}, ab[lane_count]{};
    double difference2[lane_count]{}, difference[lane_count]{}, largest[lane_count]{};
    std::uint64_t compared[lane_count]{}, changed[lane_count]{};

    void add(float from, float to, std::size_t lane) {
        const std::uint32_t bits_a = base::bits_of(from);
        const std::uint32_t bits_b = base::bits_of(to);
        const std::uint32_t size_a = bits_a & base::f32_magnitude_mask;
        const std::uint32_t size_b = bits_b & base::f32_magnitude_mask;
        const bool finite = size_a < base::f32_infinity && size_b < base::f32_infinity;
        const bool nans = size_a > base::f32_infinity && size_b > base::f32_infinity;
        const double a = finite ? static_cast<double>(from) : 0.0;
        const double b = finite ? static_cast<double>(to) : 0.0;
        const double d = b - a;
        a2[lane] += a * a;
        b2[lane] += b * b;
        ab[lane] += a * b;
        difference2[lane] += d * d;
        difference[lane] += d;
        largest[lane] = std::max(largest[lane], std::abs(d));
        compared[lane] += finite ? 1u : 0u;
        changed[lane] += bits_a != bits_b && !nans ? 1u : 0u;
    }
};

double sum(double (&x)[lane_count]) {
    for (std::size_t distance = lane_count / 2; distance > 0; distance /= 2) {
        for (std::size_t i = 0; i < distance; ++i) x[i] += x[i + distance];
    }
    return x[0];
}

}  // namespace

void add_values(const float* a, const float* b, std::uint64_t rows, std::uint64_t cols,
                std::uint64_t stride, value_figures& to) {
    lanes l;
    for (std::uint64_t r = 0; r < rows; ++r) {
        const float* const from = a + r * stride;
        const float* const next = b + r * stride;
        std::uint64_t c = 0;
        for (; c + lane_count <= cols; c += lane_count) {
            for (std::size_t i = 0; i < lane_count; ++i) l.add(from[c + i], next[c + i], i);
        }
        for (std::size_t i = 0; c + i < cols; ++i) l.add(from[c + i], next[c + i], i);
    }
    to.elements += rows * cols;
    for (std::size_t i = 0; i < lane_count; ++i) {
        to.compared += l.compared[i];
        to.changed += l.changed[i];
        to.max_difference = std::max(to.max_difference, l.largest[i]);
    }
    to.a2.add(sum(l.a2));
    to.b2.add(sum(l.b2));
    to.ab.add(sum(l.ab));
    to.difference2.add(sum(l.difference2));
    to.difference.add(sum(l.difference));
}

}  // namespace mx::diff
