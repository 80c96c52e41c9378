// SPDX-License-Identifier: Apache-2.0
// The computations of a training step that are not products or quantization, as data: THE LIST of
// jobs. A job is a range of elements, rows or columns that may be cut anywhere; the host splits it
// among threads (execution_context::run), a device among blocks of threads (cuda/job_kernels.cu).
// Both call the functions of simd/elementwise.inc. Arrays are where the context computes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "libmx/base/random.hpp"
#include "libmx/lab/simd/kernels.hpp"

#if defined(__CUDACC__)
#define MX_WHERE_JOBS_RUN __device__
#else
#define MX_WHERE_JOBS_RUN
#endif
// What a job does with [begin, end), by the kernels of an instruction set or of a device.
#define MX_JOB(by, begin, end) \
    template <typename By>     \
    MX_WHERE_JOBS_RUN void operator()(const By& by, std::size_t begin, std::size_t end) const

namespace mx::lab {

using simd::activation;
using simd::rounding;

namespace jobs {

inline constexpr std::size_t grain = 32768;  // elements; smaller ranges are not worth a thread

inline constexpr unsigned most_threads = 256;  // of a block of a device

// Of elements. `of_block`: as many as a block of a device takes.
struct of_elements {
    static constexpr std::size_t of_block = 2048;
    unsigned threads() const { return most_threads; }  ///< of the block, a power of two
    std::size_t least() const { return grain; }        ///< for a thread of the host
};
// Of rows, each by one block.
struct of_rows {
    static constexpr std::size_t of_block = 1;
    std::size_t width;
    unsigned threads() const {
        return static_cast<unsigned>(
            std::clamp<std::size_t>(std::bit_ceil(width), 32, most_threads));
    }
    std::size_t least() const { return std::max<std::size_t>(1, grain / width); }
};
// Of columns of `rows` numbers.
struct of_columns {
    static constexpr std::size_t of_block = 32;
    unsigned threads() const { return most_threads; }
    std::size_t rows;
    std::size_t least() const {
        return std::max<std::size_t>(16, 4 * grain / std::max<std::size_t>(1, rows) / 16 * 16);
    }
};

/// y = x rounded; a copy, if nothing is rounded. y may be x.
struct round : of_elements {
    rounding how;
    const float* x;
    float* y;
    MX_JOB(by, begin, end) { by.round(how, x + begin, end - begin, y + begin); }
};

/// x = value.
struct fill : of_elements {
    float value;
    float* x;
    MX_JOB(by, begin, end) { by.fill(value, end - begin, x + begin); }
};

/// x = x * by.
struct scale : of_elements {
    float factor;
    float* x;
    MX_JOB(by, begin, end) { by.scale(factor, end - begin, x + begin); }
};

/// y = y + factor * x, both rounded.
struct add_scaled : of_elements {
    float factor;
    const float* x;
    float* y;
    MX_JOB(by, begin, end) { by.add_scaled(factor, x + begin, end - begin, y + begin); }
};

/// y = a + b.
struct add : of_elements {
    const float *a, *b;
    float* y;
    MX_JOB(by, begin, end) { by.add(a + begin, b + begin, end - begin, y + begin); }
};

/// y = round(y + bias) in each row.
struct add_bias : of_rows {
    rounding how;
    const float* bias;
    float* y;
    MX_JOB(by, begin, end) { by.add_bias(how, bias, end - begin, width, y + begin * width); }
};

/// h = phi(u); `gate` is null unless phi has one.
struct activate : of_elements {
    activation what;
    rounding how;
    const float *u, *gate;
    float* h;
    MX_JOB(by, begin, end) {
        by.activate(what, how, u + begin, gate == nullptr ? nullptr : gate + begin, end - begin,
                    h + begin);
    }
};
/// Gradients of u and, unless null, of the gate.
struct activate_back : of_elements {
    activation what;
    rounding how;
    const float *u, *gate, *dh;
    float *du, *dgate;
    MX_JOB(by, begin, end) {
        by.activate_back(what, how, u + begin, gate == nullptr ? nullptr : gate + begin, dh + begin,
                         end - begin, du + begin, dgate == nullptr ? nullptr : dgate + begin);
    }
};
/// The same with rows of u and the gate side by side: 2 x width.
struct activate_halves : of_rows {
    activation what;
    rounding how;
    const float* u;
    float* h;
    MX_JOB(by, begin, end) {
        for (std::size_t r = begin; r < end; ++r) {
            const float* const row = u + 2 * r * width;
            by.activate(what, how, row, row + width, width, h + r * width);
        }
    }
};
struct activate_halves_back : of_rows {
    activation what;
    rounding how;
    const float *u, *dh;
    float* du;
    MX_JOB(by, begin, end) {
        for (std::size_t r = begin; r < end; ++r) {
            const std::size_t at = 2 * r * width;
            by.activate_back(what, how, u + at, u + at + width, dh + r * width, width, du + at,
                             du + at + width);
        }
    }
};
/// simd::kernels::stepwise_gelu.
struct stepwise_gelu : of_elements {
    rounding how;
    const float* u;
    float* h;
    MX_JOB(by, begin, end) { by.stepwise_gelu(how, u + begin, end - begin, h + begin); }
};

/// simd::kernels::norm and norm_back; the `rows` of `of` do not matter.
struct norm : of_rows {
    simd::norm_rows of;
    const float* x;
    float *y, *normal, *variance;
    MX_JOB(by, begin, end) {
        simd::norm_rows part = of;
        part.rows = end - begin;
        const std::size_t at = begin * width;
        by.norm(part, x + at, y + at, normal + at, variance + begin);
    }
};
struct norm_back : of_rows {
    simd::norm_rows of;
    const float *dy, *normal, *variance;
    float* dx;
    MX_JOB(by, begin, end) {
        simd::norm_rows part = of;
        part.rows = end - begin;
        const std::size_t at = begin * width;
        by.norm_back(part, dy + at, normal + at, variance + begin, dx + at);
    }
};
/// simd::kernels::column_sums; `normal` may be null.
struct column_sums : of_columns {
    rounding how;
    const float *dy, *normal;
    std::size_t cols;
    float* sums;
    MX_JOB(by, begin, end) { by.column_sums(how, dy, normal, rows, cols, begin, end, sums); }
};

/// The losses of rows, and their gradients.
struct squared_error : of_rows {
    const float *y, *target;
    float factor;
    float* gradient;
    double* losses;
    MX_JOB(by, begin, end) {
        for (std::size_t r = begin; r < end; ++r) {
            const std::size_t at = r * width;
            losses[r] = by.squared_error(y + at, target + at, width, factor, gradient + at);
        }
    }
};
struct divergence : of_rows {
    const float *y, *target;
    float temperature, factor;
    float* gradient;
    double* losses;
    MX_JOB(by, begin, end) {
        for (std::size_t r = begin; r < end; ++r) {
            const std::size_t at = r * width;
            losses[r] =
                by.divergence(y + at, target + at, width, temperature, factor, gradient + at);
        }
    }
};
struct cross_entropy : of_rows {
    const float* y;
    const std::uint32_t* target;
    float factor;
    float* gradient;
    double* losses;
    MX_JOB(by, begin, end) {
        for (std::size_t r = begin; r < end; ++r) {
            const std::size_t at = r * width;
            losses[r] = by.cross_entropy(y + at, target[r], width, factor, gradient + at);
        }
    }
};

/// Row i of y is row index[i] of a table, times weight[i] unless that is null.
struct look_up : of_rows {
    const float* table;
    const std::uint32_t* index;
    float* y;
    const float* weight = nullptr;
    MX_JOB(by, begin, end) {
        for (std::size_t i = begin; i < end; ++i) {
            by.round(rounding::none, table + index[i] * width, width, y + i * width);
            if (weight != nullptr) by.scale(weight[i], width, y + i * width);
        }
    }
};
/// Adds row i of dy to row index[i] of the table's gradient, in ascending order; `rows` of dy.
struct look_up_back : of_columns {
    const float* dy;
    const std::uint32_t* index;
    std::size_t cols;
    float* gradient;
    MX_JOB(by, begin, end) {
        for (std::size_t i = 0; i < rows; ++i) {
            float* const to = gradient + index[i] * cols + begin;
            by.add(to, dy + i * cols + begin, end - begin, to);
        }
    }
};

struct adam : of_elements {
    simd::adam_step step;
    const float* gradient;
    float *values, *first, *second;
    MX_JOB(by, begin, end) {
        by.adam(step, gradient + begin, end - begin, values + begin, first + begin, second + begin);
    }
};
struct sgd : of_elements {
    float rate;
    const float* gradient;
    float* values;
    MX_JOB(by, begin, end) { by.sgd(rate, gradient + begin, end - begin, values + begin); }
};

/// Consecutive numbers of an array.
struct part {
    std::uint64_t first, count;
};
/// The sums of squares of parts, each by one block.
struct sums_of_squares {
    static constexpr std::size_t of_block = 1;
    unsigned threads() const { return most_threads; }
    const part* parts;
    const float* x;
    double* sums;
    std::size_t least() const { return 1; }
    MX_JOB(by, begin, end) {
        for (std::size_t i = begin; i < end; ++i) {
            sums[i] = by.dot(x + parts[i].first, x + parts[i].first, parts[i].count);
        }
    }
};

/// Columns of x (rows x cols) to rows of y.
struct transpose : of_columns {
    const float* x;
    std::size_t cols;
    float* y;
    MX_JOB(by, begin, end) { by.transpose(x, rows, cols, begin, end, y); }
};

/// Rows of heads from rows of tokens, which have the features of all heads, `width` each; or
/// `back`. Row r is position r % context of head r / context of all sequences' heads, in order.
/// Features are turned by rotary positions unless `cosine` is null.
struct move_heads : of_rows {
    std::size_t context, heads;
    bool back;
    const float *cosine, *sine;  ///< context x width / 2
    const float* from;
    float* to;
    MX_JOB(by, begin, end) {
        const std::size_t half = width / 2;
        for (std::size_t r = begin; r < end; ++r) {
            const std::size_t head = r / context, position = r % context;
            const std::size_t token = head / heads * context + position;
            const std::size_t in_tokens = (token * heads + head % heads) * width;
            const float* const x = from + (back ? r * width : in_tokens);
            float* const y = to + (back ? in_tokens : r * width);
            const std::size_t at = position * half;
            if (cosine == nullptr) {
                by.round(rounding::none, x, width, y);
            } else if (back) {
                by.rope_back(cosine + at, sine + at, half, x, y);
            } else {
                by.rope(cosine + at, sine + at, half, x, y);
            }
        }
    }
};
/// Rows become their softmax. `causal`: of row r of matrices of `width` rows and columns the first
/// r % width + 1 numbers do, and the others become 0.
struct softmax : of_rows {
    bool causal;
    float factor;
    float* x;
    MX_JOB(by, begin, end) {
        for (std::size_t r = begin; r < end; ++r) {
            float* const row = x + r * width;
            const std::size_t count = causal ? r % width + 1 : width;
            by.softmax(row, count, factor, row);
            by.fill(0.0f, width - count, row + count);
        }
    }
};
/// The gradient of that, in place of the gradient of the softmax.
struct softmax_back : of_rows {
    bool causal;
    float factor;
    const float* softmax;
    float* gradient;
    MX_JOB(by, begin, end) {
        for (std::size_t r = begin; r < end; ++r) {
            float* const row = gradient + r * width;
            const std::size_t count = causal ? r % width + 1 : width;
            by.softmax_back(softmax + r * width, row, count, factor, row);
            by.fill(0.0f, width - count, row + count);
        }
    }
};
/// Row r of y is the sum of `group` rows of x, added to 0 in their order: those from r * group on,
/// or those whose numbers begin at index + r * group, times their weights unless these are null.
struct sum_groups : of_rows {
    std::size_t group;
    const float* x;
    float* y;
    const std::uint32_t* index = nullptr;
    const float* weight = nullptr;
    MX_JOB(by, begin, end) {
        for (std::size_t r = begin; r < end; ++r) {
            float* const to = y + r * width;
            by.fill(0.0f, width, to);
            for (std::size_t i = r * group; i < (r + 1) * group; ++i) {
                const std::size_t from = index == nullptr ? i : index[i];
                if (weight == nullptr) {
                    by.add(to, x + from * width, width, to);
                } else {
                    by.add_scaled(weight[from], x + from * width, width, to);
                }
            }
        }
    }
};
/// The products of rows of x with those of y.
struct row_dots : of_rows {
    const float *x, *y;
    double* dots;
    MX_JOB(by, begin, end) {
        for (std::size_t r = begin; r < end; ++r) {
            dots[r] = by.dot(x + r * width, y + r * width, width);
        }
    }
};

/// Numbers of a stream of normal ones, from number `first` on.
struct normal : of_elements {
    base::random_key key;
    std::uint64_t first;
    float* x;
    MX_JOB(by, begin, end) { by.normal(key, first + begin, end - begin, x + begin); }
};

}  // namespace jobs

using job =
    std::variant<jobs::round, jobs::fill, jobs::scale, jobs::add_scaled, jobs::add, jobs::add_bias,
                 jobs::activate, jobs::activate_back, jobs::activate_halves,
                 jobs::activate_halves_back, jobs::stepwise_gelu, jobs::norm, jobs::norm_back,
                 jobs::column_sums, jobs::squared_error, jobs::divergence, jobs::cross_entropy,
                 jobs::look_up, jobs::look_up_back, jobs::adam, jobs::sgd, jobs::sums_of_squares,
                 jobs::transpose, jobs::move_heads, jobs::softmax, jobs::softmax_back,
                 jobs::sum_groups, jobs::row_dots, jobs::normal>;

#undef MX_JOB
#undef MX_WHERE_JOBS_RUN

}  // namespace mx::lab
