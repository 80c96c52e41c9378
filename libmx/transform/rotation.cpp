// SPDX-License-Identifier: Apache-2.0
#include "libmx/transform/rotation.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "libmx/base/random.hpp"
#include "libmx/transform/simd/turns.hpp"

namespace mx::transform {
namespace {

float one_nan(float v) { return v == v ? v : std::numeric_limits<float>::quiet_NaN(); }

// Elements of a group, forward: signs, float32 butterflies, the factor.
struct forward {
    using number = float;
    const float* sign;
    float factor;

    forward(const float* signs, std::size_t n) : sign(signs), factor(factor_of(n)) {}
    float load(std::size_t i, float x) const { return sign[i] * x; }
    float store(std::size_t, float y) const { return one_nan(y * factor); }
};

// Inverse: double butterflies, the division, signs.
struct backward {
    using number = double;
    const float* sign;
    double divisor;

    backward(const float* signs, std::size_t n)
        : sign(signs), divisor(static_cast<double>(n) * static_cast<double>(factor_of(n))) {}
    double load(std::size_t, float x) const { return static_cast<double>(x); }
    float store(std::size_t i, double y) const {
        // A zero becomes +0, whatever its sign before the rotation.
        return one_nan(sign[i] * static_cast<float>(y / divisor) + 0.0f);
    }
};

// Whether a is a square modulo the prime q, 0 < a < q.
bool is_square(std::size_t a, std::size_t q) {
    for (std::size_t i = 1; i < q; ++i) {
        if (i * i % q == a) return true;
    }
    return false;
}

// Entries of the matrix of order b in rows, and of its transpose.
std::vector<float> entries_of(std::size_t b, bool transposed) {
    std::vector<float> m;
    for (std::size_t i = 0; i < b; ++i) {
        for (std::size_t j = 0; j < b; ++j) {
            m.push_back(static_cast<float>(transposed ? base_entry(b, j, i) : base_entry(b, i, j)));
        }
    }
    return m;
}

// A group: sums of b neighbours, then butterflies. The sums of each stage are independent of each
// other, so the way back may begin with those that the way there ends with: the matrices commute.
template <typename T>
void sum_group(const std::vector<float>& m, std::size_t b, std::vector<T>& x) {
    std::vector<T> sums(b);
    for (std::size_t at = 0; at < x.size(); at += b) {
        for (std::size_t i = 0; i < b; ++i) {
            T sum = 0;
            for (std::size_t j = 0; j < b; ++j) {
                const T term = m[i * b + j] > 0 ? x[at + j] : -x[at + j];
                sum = j == 0 ? term : sum + term;
            }
            sums[i] = sum;
        }
        std::copy(sums.begin(), sums.end(), x.begin() + static_cast<std::ptrdiff_t>(at));
    }
    for (std::size_t d = b; d < x.size(); d *= 2) {
        for (std::size_t i = 0; i < x.size(); i += 2 * d) {
            for (std::size_t j = i; j < i + d; ++j) {
                const T low = x[j], high = x[j + d];
                x[j] = low + high;
                x[j + d] = low - high;
            }
        }
    }
}

// Whole groups of every run: gather, rotate, scatter.
template <typename T, typename Load, typename Work, typename Store>
void for_whole_groups(std::size_t size, const float_rows& x, run along, Load&& load, Work&& work,
                      Store&& store) {
    const bool down = along == run::column;
    const std::size_t runs = down ? x.cols : x.rows, length = down ? x.rows : x.cols;
    const std::size_t step = down ? x.stride : 1;
    std::vector<T> group(size);
    for (std::size_t r = 0; r < runs; ++r) {
        float* const first = x.data + r * (down ? 1 : x.stride);
        for (std::size_t at = 0; at + size <= length; at += size) {
            float* const g = first + at * step;
            for (std::size_t i = 0; i < size; ++i) group[i] = load(i, g[i * step]);
            work(group);
            for (std::size_t i = 0; i < size; ++i) g[i * step] = store(i, group[i]);
        }
    }
}

template <typename Way>
void turn_groups(const simd::groups& g) {
    const Way way(g.signs, g.size);
    const std::vector<float> entries = entries_of(g.base, std::is_same_v<Way, backward>);
    using number = typename Way::number;
    for_whole_groups<number>(
        g.size, g.x, g.along, [&](std::size_t i, float v) { return way.load(i, v); },
        [&](std::vector<number>& group) { sum_group(entries, g.base, group); },
        [&](std::size_t i, number y) { return way.store(i, y); });
}

// The fastest of this CPU.
simd::turns best_turns() {
    using base::simd::target;
    for (const target t : {target::avx512, target::avx2, target::sse4, target::neon}) {
        const simd::turns kernels = simd::turns_for(t);
        if (kernels.there != nullptr && base::simd::supported(t)) return kernels;
    }
    return simd::portable_turns;
}

// The part of every run from `at` on, `length` long.
float_rows part_of(const float_rows& x, run along, std::size_t at, std::size_t length) {
    if (along == run::column) return {x.data + at * x.stride, length, x.cols, x.stride};
    return {x.data + at, x.rows, length, x.stride};
}

template <typename Way>
void turn_hadamard(const rotation& r, const float_rows& x, run along) {
    static const simd::turns kernels = best_turns();
    const std::vector<float> signs = signs_of(r);
    const auto turn_part = [&](std::size_t at, std::size_t length, std::size_t n) {
        const simd::groups g{part_of(x, along, at, length), along, n, base_of(n),
                             signs.data() + at % signs.size()};
        const simd::turns& by = g.base == 1 ? kernels : simd::portable_turns;
        (std::is_same_v<Way, backward> ? by.back : by.there)(g);
    };
    const std::size_t length = along == run::column ? x.rows : x.cols;
    std::size_t at = length / signs.size() * signs.size();
    if (at > 0) turn_part(0, at, signs.size());
    while (at < length) {
        const std::size_t piece = std::bit_floor(length - at);
        turn_part(at, piece, piece);
        at += piece;
    }
}

template <typename Way>
void turn_by_matrix(const rotation& r, const float_rows& x, run along) {
    const auto size = static_cast<std::size_t>(r.size);
    const std::shared_ptr<const std::vector<double>> m = load_matrix(r);
    constexpr bool back = std::is_same_v<Way, backward>;
    std::vector<double> sums(size);
    for_whole_groups<double>(
        size, x, along, [](std::size_t, float v) { return static_cast<double>(v); },
        [&](std::vector<double>& group) {
            for (std::size_t i = 0; i < size; ++i) {
                double sum = 0;
                for (std::size_t j = 0; j < size; ++j) {
                    sum += (*m)[back ? j * size + i : i * size + j] * group[j];
                }
                sums[i] = sum;
            }
            group = sums;
        },
        // A zero is +0.
        [](std::size_t, double y) { return one_nan(static_cast<float>(y) + 0.0f); });
}

template <typename Way>
void turn(const rotation& r, const float_rows& x, run along) {
    if (r.what == kind::matrix) return turn_by_matrix<Way>(r, x, along);
    turn_hadamard<Way>(r, x, along);
}

}  // namespace

constinit const simd::turns simd::portable_turns{turn_groups<forward>, turn_groups<backward>};

std::size_t base_of(std::size_t n) {
    if (n == 0) return 0;
    const auto odd = n >> std::countr_zero(n);
    if (odd == 1) return 1;
    return odd == 3 && n % 12 == 0 ? 12 : odd == 5 && n % 20 == 0 ? 20 : 0;
}

bool is_size(kind what, int n) {
    if (what == kind::matrix) return n >= 2 && n <= largest_size;
    if (n < 2 || n > largest_size) return false;
    const std::size_t b = base_of(static_cast<std::size_t>(n));
    return b > 1 || (b == 1 && n <= 1024);
}

int base_entry(std::size_t b, std::size_t i, std::size_t j) {
    if (b == 1 || i == j) return 1;
    if (i == 0) return 1;
    if (j == 0) return -1;
    const std::size_t q = b - 1;
    return is_square((j + q - i) % q, q) ? 1 : -1;
}

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
