// SPDX-License-Identifier: Apache-2.0
#include "libmx/transform/rotation.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "libmx/base/random.hpp"

namespace mx::transform {
namespace {

// Groups under Sylvester's matrix: butterflies at the distances 1, 2, 4, ..., in loops that
// compilers turn into vectors. T is float on the way there and double on the way back.

// One stage over `Count` values: sums and differences of neighbours go into the first and the
// second half, so that the next distance of the stated order is one of neighbours again.
template <std::size_t Count, typename T>
void stage(const T* __restrict from, T* __restrict to) {
    for (std::size_t i = 0; i < Count / 2; ++i) {
        const T a = from[2 * i];
        const T b = from[2 * i + 1];
        to[i] = a + b;
        to[i + Count / 2] = a - b;
    }
}

// Groups of N values that lie one after the other, `Groups` of them (a power of two) at once, so
// that loops are long: load(i) and store(i, value) for the i-th of the N * Groups values. The
// additions are those of each group in place. After log2 N stages, element i of group g is at
// i * Groups + g.
template <typename T, std::size_t N, std::size_t Groups, typename Load, typename Store>
void row_groups(Load&& load, Store&& store) {
    constexpr std::size_t count = N * Groups;
    alignas(64) T room[2][count];
    for (std::size_t i = 0; i < count; ++i) room[0][i] = load(i);
    std::size_t at = 0;
    for (std::size_t d = 1; d < N; d *= 2, at = 1 - at) stage<count>(room[at], room[1 - at]);
    const T* const done = room[at];
    for (std::size_t g = 0; g < Groups; ++g) {
        for (std::size_t i = 0; i < N; ++i) store(g * N + i, done[i * Groups + g]);
    }
}

// Columns worked on side by side.
inline constexpr std::size_t strip = 16;

// N rows of a strip of columns: load(i, k) and store(i, k, value) for row i, column k < strip.
template <typename T, std::size_t N, typename Load, typename Store>
void column_group(Load&& load, Store&& store) {
    T t[N][strip];
    for (std::size_t i = 0; i < N; ++i) {
        for (std::size_t k = 0; k < strip; ++k) t[i][k] = load(i, k);
    }
    for (std::size_t d = 1; d < N; d *= 2) {
        for (std::size_t i = 0; i < N; i += 2 * d) {
            for (std::size_t j = i; j < i + d; ++j) {
                for (std::size_t k = 0; k < strip; ++k) {
                    const T a = t[j][k];
                    const T b = t[j + d][k];
                    t[j][k] = a + b;
                    t[j + d][k] = a - b;
                }
            }
        }
    }
    for (std::size_t i = 0; i < N; ++i) {
        for (std::size_t k = 0; k < strip; ++k) store(i, k, t[i][k]);
    }
}

// Calls body with a power of two up to 1024 as a constant.
template <typename Body>
void with_size(std::size_t n, Body&& body) {
    switch (n) {
        case 1024:
            return body(std::integral_constant<std::size_t, 1024>());
        case 512:
            return body(std::integral_constant<std::size_t, 512>());
        case 256:
            return body(std::integral_constant<std::size_t, 256>());
        case 128:
            return body(std::integral_constant<std::size_t, 128>());
        case 64:
            return body(std::integral_constant<std::size_t, 64>());
        case 32:
            return body(std::integral_constant<std::size_t, 32>());
        case 16:
            return body(std::integral_constant<std::size_t, 16>());
        case 8:
            return body(std::integral_constant<std::size_t, 8>());
        case 4:
            return body(std::integral_constant<std::size_t, 4>());
        case 2:
            return body(std::integral_constant<std::size_t, 2>());
        default:
            return body(std::integral_constant<std::size_t, 1>());
    }
}

// Values of a row that are processed at once, for short groups.
constexpr std::size_t row_chunk = 128;

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
void turn_powers(const rotation& r, const float_rows& x, run along) {
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
            constexpr std::size_t chunk = std::max<std::size_t>(row_chunk, count());
            constexpr std::size_t together = chunk / count();
            std::size_t at = 0;
            for (; at + chunk <= whole; at += chunk) {
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

// The order of the matrix from which Sylvester's construction makes the size: 1, 12 or 20; 0: none.
std::size_t base_of(std::size_t n) {
    if (n == 0) return 0;
    const auto odd = n >> std::countr_zero(n);
    if (odd == 1) return 1;
    return odd == 3 && n % 12 == 0 ? 12 : odd == 5 && n % 20 == 0 ? 20 : 0;
}

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

// A group whose size is no power of two. The sums of each stage are independent of each other, so
// the way back may begin with those that the way there ends with: the matrices commute.
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

// The rest of every run after its whole groups.
float_rows rest_of(std::size_t size, const float_rows& x, run along) {
    if (along == run::column) {
        const std::size_t whole = x.rows / size * size;
        return {x.data + whole * x.stride, x.rows - whole, x.cols, x.stride};
    }
    const std::size_t whole = x.cols / size * size;
    return {x.data + whole, x.rows, x.cols - whole, x.stride};
}

// Sizes that are no powers of two: whole groups here, the rest in powers of two.
template <typename Way>
void turn_others(const rotation& r, std::size_t b, const float_rows& x, run along) {
    using number = typename Way::number;
    const std::vector<float> signs = signs_of(r);
    const auto size = static_cast<std::size_t>(r.size);
    const Way way(signs.data(), size);
    const std::vector<float> m = entries_of(b, std::is_same_v<Way, backward>);
    for_whole_groups<number>(
        size, x, along, [&](std::size_t i, float v) { return way.load(i, v); },
        [&](std::vector<number>& group) { sum_group(m, b, group); },
        [&](std::size_t i, number y) { return way.store(i, y); });
    const float_rows rest = rest_of(size, x, along);
    const std::size_t length = along == run::column ? rest.rows : rest.cols;
    for_each_group(length, size, [&](std::size_t at, std::size_t n) {
        const Way tail(signs.data() + at, n);
        with_size(n, [&](auto count) {
            if (along == run::column) {
                group_of_columns<Way, count()>(tail, rest.data + at * rest.stride, rest.cols,
                                               rest.stride);
                return;
            }
            for (std::size_t row = 0; row < rest.rows; ++row) {
                groups_of_row<Way, count(), 1>(tail, rest.data + row * rest.stride + at);
            }
        });
    });
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
    const std::size_t b = base_of(static_cast<std::size_t>(r.size));
    if (b > 1) return turn_others<Way>(r, b, x, along);
    turn_powers<Way>(r, x, along);
}

}  // namespace

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
