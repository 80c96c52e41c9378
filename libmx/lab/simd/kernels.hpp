// SPDX-License-Identifier: Apache-2.0
// What a training computes, as loops over arrays: one table per instruction set, and every table
// gives the same bits. Nothing here allocates, throws or knows of threads: callers cut ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "libmx/base/random.hpp"
#include "libmx/base/simd/targets.hpp"

namespace mx::lab::simd {

using base::simd::target;

/// How a float32 result is kept.
enum class rounding : std::uint8_t {
    none,
    bf16,       ///< to bfloat16, ties away from zero: what microxcaling does
    bf16_even,  ///< to bfloat16, ties to even
};

enum class activation : std::uint8_t {
    none,
    relu,
    gelu,    ///< x * (1 + erf(x / sqrt 2)) / 2
    swiglu,  ///< of two halves: u1 * silu(u2)
};

/// Rows of A and columns of C of one call. Element (r, k) of A is a[r * a_row + k * a_depth].
struct product_tile {
    const float* a;
    std::size_t a_row, a_depth;
    const float* b;  ///< packed: element (k, j) at b[k * columns + j]
    std::size_t depth;
    float* c;  ///< rows x columns, rows `c_row` apart
    std::size_t c_row;
    bool first;  ///< sums begin at +0 rather than at what `c` holds
};

/// Rows of a layer norm (or, with `rms`, of one that subtracts no mean).
struct norm_rows {
    std::size_t rows, width;
    float eps;
    bool rms;
    rounding steps;       ///< of every intermediate result
    rounding statistics;  ///< forward, of those up to the variance: that of `steps`, or none
    const float* gain;
    const float* bias;  ///< null: none
};

/// The numbers of an Adam update that all parameters share, each rounded to float32 once.
struct adam_step {
    float one_minus_beta1, beta2, one_minus_beta2;
    float correction;  ///< sqrt(1 - beta2^t)
    float eps;
    float minus_rate;  ///< -rate / (1 - beta1^t)
};

struct kernels {
    std::string_view name;
    /// Extents of product_tile.
    std::size_t tile_rows, tile_columns;
    /// C += A B: per output one chain of fused multiply-adds in ascending k.
    void (*product)(const product_tile&);

    /// y = x rounded; y may be x.
    void (*round)(rounding how, const float* x, std::size_t count, float* y);
    /// The functions of functions.inc, elementwise.
    void (*exp)(const float* x, std::size_t count, float* y);
    void (*log)(const float* x, std::size_t count, float* y);
    void (*erf)(const float* x, std::size_t count, float* y);
    void (*tanh)(const float* x, std::size_t count, float* y);

    /// h = phi(u). SwiGLU reads u and `gate` (its second half), with silu in steps rounded by
    /// `how`.
    void (*activate)(activation what, rounding how, const float* u, const float* gate,
                     std::size_t count, float* h);
    /// The gradients of u and of the gate from that of h.
    void (*activate_back)(activation what, rounding how, const float* u, const float* gate,
                          const float* dh, std::size_t count, float* du, float* dgate);

    /// y = a + b, and y = round(y + bias) with the bias added to every row.
    void (*add)(const float* a, const float* b, std::size_t count, float* y);
    void (*add_bias)(rounding how, const float* bias, std::size_t rows, std::size_t cols, float* y);

    /// y, what backward needs: `normal` (rows x width) and per row variance + eps.
    void (*norm)(const norm_rows& of, const float* x, float* y, float* normal, float* variance);
    void (*norm_back)(const norm_rows& of, const float* dy, const float* normal,
                      const float* variance, float* dx);
    /// Sums over rows of round(dy * normal), or of dy where normal is null, for columns
    /// [begin, end): in float64, rounded to float32 once; or, where `how` rounds, in float32 from
    /// the first row to the last, and rounded by it.
    void (*column_sums)(rounding how, const float* dy, const float* normal, std::size_t rows,
                        std::size_t cols, std::size_t begin, std::size_t end, float* sums);

    /// The sum of (y - target)^2 of float32 differences, and gradient = scale * (y - target).
    double (*squared_error)(const float* y, const float* target, std::size_t count, float scale,
                            float* gradient);
    /// Kullback-Leibler divergence of softmax(y / t) from softmax(target / t) of one row, and
    /// gradient = scale * (softmax(y / t) - softmax(target / t)).
    double (*divergence)(const float* y, const float* target, std::size_t count, float temperature,
                         float scale, float* gradient);

    /// p = softmax(scale * x) of one row: exponentials in float32 of what is left when the largest
    /// is taken away, divided by their sum. NaN throughout where one is NaN or +Inf.
    void (*softmax)(const float* x, std::size_t count, float scale, float* p);
    /// The gradient of x: scale * p * (dp - dp.p). dx may be dp.
    void (*softmax_back)(const float* p, const float* dp, std::size_t count, float scale,
                         float* dx);
    /// -log softmax(y)[target] of one row, in float64, and gradient = scale * (softmax(y) - one at
    /// `target`). NaN where y has NaN or +Inf.
    double (*cross_entropy)(const float* y, std::size_t target, std::size_t count, float scale,
                            float* gradient);

    void (*adam)(const adam_step& s, const float* g, std::size_t count, float* p, float* m,
                 float* v);
    /// p = fma(-rate, g, p).
    void (*sgd)(float rate, const float* g, std::size_t count, float* p);

    double (*sum_of_squares)(const float* x, std::size_t count);
    /// Standard normal numbers, elements [first, first + count) of the stream `key`.
    void (*normal)(const base::random_key& key, std::uint64_t first, std::size_t count, float* x);
};

/// Every table that runs on this processor, the portable one first and the fastest last.
std::span<const kernels* const> available();
/// The fastest.
const kernels& best();
/// The table of this name. Throws base::error (usage, unavailable).
const kernels& named(std::string_view name);

/// cos(2 pi turns) for 0 <= turns < 1, by a polynomial of our own.
double cosine_of_turns(double turns);
/// e^x for -120 <= x <= 120, and the natural logarithm of positive normal numbers, likewise.
double exponential(double x);
double logarithm(double x);

/// The portable table: the reference.
extern const kernels scalar_kernels;

/// The kernels of an instruction set, or null when this build lacks it.
const kernels* kernels_for(target t);

}  // namespace mx::lab::simd
