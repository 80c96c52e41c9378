// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/optimizer.hpp"

#include <cmath>
#include <vector>

namespace mx::lab {
namespace {

// Exponentiation by squaring: the result must not depend on a library's pow.
double power(double x, std::uint64_t n) {
    double y = 1;
    for (; n != 0; n >>= 1, x *= x) {
        if ((n & 1u) != 0) y *= x;
    }
    return y;
}

}  // namespace

void update(execution_context& on, optimizer by, const parameter_list& list,
            const update_number& number, double rate, std::span<const float> gradients,
            std::span<float> values, moments& m, const adam_numbers& adam) {
    const double beta1 = adam.beta1, beta2 = adam.beta2;
    simd::adam_step s{};
    s.one_minus_beta1 = static_cast<float>(1 - beta1);
    s.beta2 = static_cast<float>(beta2);
    s.one_minus_beta2 = static_cast<float>(1 - beta2);
    s.eps = static_cast<float>(adam.eps);
    std::span<float> first, second;
    if (by == optimizer::adam) {
        for (mirrored* const all : {&m.first, &m.second}) {
            if (all->empty()) all->assign(values.size(), 0.0f);
        }
        first = m.first.change_there(on);
        second = m.second.change_there(on);
    }
    for (const parameter& p : list.all()) {
        const std::uint64_t t =
            p.kind == parameter_kind::norm_bias ? number.of_norm_biases : number.of_all;
        if (t == 0) continue;
        const float* const g = of(gradients, p);
        float* const w = of(values, p);
        if (by == optimizer::sgd) {
            on.run(jobs::sgd{{}, static_cast<float>(rate), g, w}, p.count);
            continue;
        }
        if (adam.decay != 0 && p.kind == parameter_kind::weight) {
            on.run(jobs::sgd{{}, static_cast<float>(rate * adam.decay), w, w}, p.count);
        }
        s.correction = static_cast<float>(std::sqrt(1 - power(beta2, t)));
        s.minus_rate = static_cast<float>(-(rate / (1 - power(beta1, t))));
        on.run(jobs::adam{{}, s, g, w, of(first, p), of(second, p)}, p.count);
    }
}

}  // namespace mx::lab
