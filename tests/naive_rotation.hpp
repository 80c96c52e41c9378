// SPDX-License-Identifier: Apache-2.0
// An independent implementation of Hadamard rotations, by recursion over the halves of a group and
// one element at a time, for tests of the library and the commands.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "libmx/base/random.hpp"
#include "libmx/transform/rotation.hpp"

namespace mx::tests {

/// Paley's matrix of order b = q + 1 times x: I + S, S with a border of ones and the Legendre
/// symbols of j - i, by Euler's criterion.
inline std::vector<float> paley(const std::vector<float>& x) {
    const auto q = static_cast<int>(x.size()) - 1;
    const auto symbol = [&](int a) {
        int power = 1;
        for (int k = 0; k < (q - 1) / 2; ++k) power = power * a % q;
        return power == 1;
    };
    std::vector<float> y;
    for (int i = 0; i <= q; ++i) {
        float sum = 0;
        for (int j = 0; j <= q; ++j) {
            const bool plus = i == j || i == 0 || (j != 0 && symbol((j - i + q) % q));
            const float term =
                plus ? x[static_cast<std::size_t>(j)] : -x[static_cast<std::size_t>(j)];
            sum = j == 0 ? term : sum + term;
        }
        y.push_back(sum);
    }
    return y;
}

/// The matrix of a group times x in float32: the halves first, then the largest distance.
inline std::vector<float> sylvester(const std::vector<float>& x) {
    if (x.size() == 1) return x;
    if (x.size() == 12 || x.size() == 20) return paley(x);
    const auto half = static_cast<std::ptrdiff_t>(x.size() / 2);
    const std::vector<float> low = sylvester({x.begin(), x.begin() + half});
    const std::vector<float> high = sylvester({x.begin() + half, x.end()});
    std::vector<float> y;
    for (std::size_t i = 0; i < low.size(); ++i) y.push_back(low[i] + high[i]);
    for (std::size_t i = 0; i < low.size(); ++i) y.push_back(low[i] - high[i]);
    return y;
}

inline float naive_sign(const transform::rotation& r, std::size_t position) {
    if (r.what != transform::kind::random_hadamard) return 1;
    const std::uint64_t index = position % static_cast<std::size_t>(r.size);
    const std::uint64_t stream = base::tensor_id("random-hadamard");
    return base::random_u32({r.seed, stream}, index) >= 0x80000000u ? -1.0f : 1.0f;
}

/// A whole row or column.
inline std::vector<float> naive_run(const transform::rotation& r, const std::vector<float>& x) {
    std::vector<float> out;
    auto n = static_cast<std::size_t>(r.size);
    while (out.size() < x.size()) {
        const std::size_t left = x.size() - out.size();
        if (n > left) n = std::bit_floor(left);
        std::vector<float> group;
        for (std::size_t i = out.size(); group.size() < n; ++i) {
            group.push_back(naive_sign(r, i) * x[i]);
        }
        const auto factor = static_cast<float>(std::pow(static_cast<double>(n), -0.5));
        for (const float y : sylvester(group)) out.push_back(factor * y);
    }
    return out;
}

/// `batch` matrices of rows x cols, along the rows or down the columns.
inline std::vector<float> naive_rotation(const transform::rotation& r, std::vector<float> x,
                                         std::size_t batch, std::size_t rows, std::size_t cols,
                                         bool down) {
    const std::size_t runs = down ? cols : rows;
    const std::size_t length = down ? rows : cols;
    for (std::size_t run = 0; run < batch * runs; ++run) {
        const std::size_t first = down ? run / cols * rows * cols + run % cols : run * cols;
        const std::size_t step = down ? cols : 1;
        std::vector<float> values;
        for (std::size_t i = 0; i < length; ++i) values.push_back(x[first + i * step]);
        values = naive_run(r, values);
        for (std::size_t i = 0; i < length; ++i) x[first + i * step] = values[i];
    }
    return x;
}

}  // namespace mx::tests
