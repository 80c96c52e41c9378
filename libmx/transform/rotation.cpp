// SPDX-License-Identifier: Apache-2.0
#include "libmx/transform/rotation.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "libmx/base/random.hpp"
#include "libmx/transform/butterflies.hpp"

namespace mx::transform {
namespace {

float one_nan(float v) { return v == v ? v : std::numeric_limits<float>::quiet_NaN(); }

// Elements of a group on their way there: signs, float32 butterflies, the factor.
struct forward {
    using number = float;
    const float* sign;
    float factor;

    forward(const float* signs, std::size_t n) : sign(signs), factor(factor_of(n)) {}
    float load(std::size_t i, float x) const { return sign[i] * x; }
    float store(std::size_t, float y) const { return one_nan(y * factor); }
};

// On their way back: double butterflies, the division, signs.
struct backward {
    using number = double;
    const float* sign;
    double divisor;

    backward(const float* signs, std::size_t n)
        : sign(signs), divisor(static_cast<double>(n) * static_cast<double>(factor_of(n))) {}
    double load(std::size_t, float x) const { return static_cast<double>(x); }
    float store(std::size_t i, double y) const {
        // A zero comes back as +0, whatever its sign there.
        return one_nan(sign[i] * static_cast<float>(y / divisor) + 0.0f);
    }
};

template <typename Way, std::size_t N, std::size_t Groups>
void groups_of_row(const Way& way, float* x) {
    row_groups<typename Way::number, N, Groups>(
        [&](std::size_t i) { return way.load(i % N, x[i]); },
        [&](std::size_t i, typename Way::number y) { x[i] = way.store(i % N, y); });
}

// N rows from `x` on. The last strip may be narrow; columns that are not there count as zeros.
template <typename Way, std::size_t N>
void group_of_columns(const Way& way, float* x, std::size_t cols, std::size_t stride) {
    using number = typename Way::number;
    std::size_t c = 0;
    for (; c + strip <= cols; c += strip) {
        float* const at = x + c;
        column_group<number, N>(
            [&](std::size_t i, std::size_t k) { return way.load(i, at[i * stride + k]); },
            [&](std::size_t i, std::size_t k, number y) { at[i * stride + k] = way.store(i, y); });
    }
    if (c == cols) return;
    float* const at = x + c;
    const std::size_t left = cols - c;
    column_group<number, N>(
        [&](std::size_t i, std::size_t k) {
            return k < left ? way.load(i, at[i * stride + k]) : number{0};
        },
        [&](std::size_t i, std::size_t k, number y) {
            if (k < left) at[i * stride + k] = way.store(i, y);
        });
}

// The groups of runs of `length` elements: whole ones, then the tail's.
template <typename OnGroup>
void for_each_group(std::size_t length, std::size_t size, OnGroup&& on_group) {
    std::size_t at = 0;
    for (; at + size <= length; at += size) on_group(at, size);
    while (at < length) {
        const std::size_t piece = std::bit_floor(length - at);
        on_group(at, piece);
        at += piece;
    }
}

template <typename Way>
void turn(const rotation& r, const float_rows& x, run along) {
    const std::vector<float> signs = signs_of(r);
    const auto size = static_cast<std::size_t>(r.size);
    if (along == run::column) {
        for_each_group(x.rows, size, [&](std::size_t at, std::size_t n) {
            const Way way(signs.data() + at % size, n);
            with_size(n, [&](auto count) {
                group_of_columns<Way, count()>(way, x.data + at * x.stride, x.cols, x.stride);
            });
        });
        return;
    }
    const std::size_t whole = x.cols / size * size;
    with_size(size, [&](auto count) {
        const Way way(signs.data(), size);
        for (std::size_t row = 0; row < x.rows; ++row) {
            float* const first = x.data + row * x.stride;
            constexpr std::size_t together = largest_size / count();
            std::size_t at = 0;
            for (; at + largest_size <= whole; at += largest_size) {
                groups_of_row<Way, count(), together>(way, first + at);
            }
            for (; at < whole; at += count()) groups_of_row<Way, count(), 1>(way, first + at);
        }
    });
    for_each_group(x.cols - whole, size, [&](std::size_t at, std::size_t n) {
        const Way way(signs.data() + at, n);
        with_size(n, [&](auto count) {
            for (std::size_t row = 0; row < x.rows; ++row) {
                groups_of_row<Way, count(), 1>(way, x.data + row * x.stride + whole + at);
            }
        });
    });
}

}  // namespace

float factor_of(std::size_t n) { return static_cast<float>(1 / std::sqrt(static_cast<double>(n))); }

std::vector<float> signs_of(const rotation& r) {
    std::vector<float> signs(static_cast<std::size_t>(r.size), 1.0f);
    if (r.what != kind::random_hadamard) return signs;
    constexpr std::uint64_t stream = base::tensor_id("random-hadamard");
    for (std::size_t i = 0; i < signs.size(); ++i) {
        if (base::random_u32({r.seed, stream}, i) >> 31 != 0) signs[i] = -1.0f;
    }
    return signs;
}

void rotate(const rotation& r, const float_rows& x, run along) { turn<forward>(r, x, along); }

void rotate_back(const rotation& r, const float_rows& x, run along) { turn<backward>(r, x, along); }

}  // namespace mx::transform
