// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/optimizer.hpp"

#include <cmath>

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
            const update_number& number, double rate, const std::vector<float>& gradients,
            std::vector<float>& values, moments& m, const adam_numbers& adam) {
    const double beta1 = adam.beta1, beta2 = adam.beta2;
    simd::adam_step s{};
    s.one_minus_beta1 = static_cast<float>(1 - beta1);
    s.beta2 = static_cast<float>(beta2);
    s.one_minus_beta2 = static_cast<float>(1 - beta2);
    s.eps = static_cast<float>(adam.eps);
    if (by == optimizer::adam) {
        m.first.resize(values.size());
        m.second.resize(values.size());
    }
    for (const parameter& p : list.all()) {
        const std::uint64_t t =
            p.kind == parameter_kind::norm_bias ? number.of_norm_biases : number.of_all;
        if (t == 0) continue;
        s.correction = static_cast<float>(std::sqrt(1 - power(beta2, t)));
        s.minus_rate = static_cast<float>(-(rate / (1 - power(beta1, t))));
        on.split(p.count, 65536, [&](std::size_t begin, std::size_t end, int) {
            const std::size_t at = p.first + begin;
            const float* const g = gradients.data() + at;
            if (by == optimizer::sgd) {
                on.kernels().sgd(static_cast<float>(rate), g, end - begin, values.data() + at);
                return;
            }
            float* const w = values.data() + at;
            if (adam.decay != 0 && p.kind == parameter_kind::weight) {
                on.kernels().sgd(static_cast<float>(rate * adam.decay), w, end - begin, w);
            }
            on.kernels().adam(s, g, end - begin, w, m.first.data() + at, m.second.data() + at);
        });
    }
}

}  // namespace mx::lab
