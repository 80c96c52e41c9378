// SPDX-License-Identifier: Apache-2.0
// The computations of a training step as loops over arrays: one table per instruction set, all with
// the same bits. Kernels neither allocate, throw nor start threads; callers split the ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "libmx/base/random.hpp"
#include "libmx/base/simd/targets.hpp"

namespace mx::lab::simd {

using base::simd::target;

/// How a float32 result is rounded.
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

/// Rows of A and columns of C for one call. Element (r, k) of A is a[r * a_row + k * a_depth].
template <typename T>
struct product_tile {
    const T* a;
    std::size_t a_row, a_depth;
    const T* b;  ///< packed: element (k, j) at b[k * columns + j]
    std::size_t depth;
    T* c;  ///< rows x columns, rows `c_row` apart
    std::size_t c_row;
    bool first;  ///< sums begin at +0 rather than at what `c` holds
};

/// Rows of a layer norm or, with `rms`, of one without subtraction of the mean.
struct norm_rows {
    std::size_t rows, width;
    float eps;
    bool rms;
    rounding steps;       ///< of every intermediate result
    rounding statistics;  ///< forward, of those up to the variance: that of `steps`, or none
    const float* gain;
    const float* bias;  ///< null: none
};

/// The scalars of an Adam update, each rounded to float32 once.
struct adam_step {
    float one_minus_beta1, beta2, one_minus_beta2;
    float correction;  ///< sqrt(1 - beta2^t)
    float eps;
    float minus_rate;  ///< -rate / (1 - beta1^t)
};

struct kernels {
    std::string_view name;
    /// Extents of product_tile in float32; in float64 it has half as many columns.
    std::size_t tile_rows, tile_columns;
    /// C += A B: each output is one chain of fused multiply-adds in ascending k, and
    /// base::quiet_nan() if it is NaN.
    void (*product)(const product_tile<float>&);
    void (*product_float64)(const product_tile<double>&);

    /// y = x rounded; y may be x.
    void (*round)(rounding how, const float* x, std::size_t count, float* y);
    /// The functions of functions.inc, elementwise.
    void (*exp)(const float* x, std::size_t count, float* y);
    void (*log)(const float* x, std::size_t count, float* y);
    void (*erf)(const float* x, std::size_t count, float* y);
    void (*tanh)(const float* x, std::size_t count, float* y);

    /// h = phi(u). SwiGLU reads u and `gate` (its second half); its silu is rounded by `how` at
    /// every step.
    void (*activate)(activation what, rounding how, const float* u, const float* gate,
                     std::size_t count, float* h);
    /// Computes the gradients of u and of the gate from the gradient of h.
    void (*activate_back)(activation what, rounding how, const float* u, const float* gate,
                          const float* dh, std::size_t count, float* du, float* dgate);

    /// h = u * sigmoid(1.59375 (u + 0.044677734375 u^3)), rounded by `how` at every step.
    void (*stepwise_gelu)(rounding how, const float* u, std::size_t count, float* h);

    /// y = a + b; and y = round(y + bias), with the bias added to every row.
    void (*add)(const float* a, const float* b, std::size_t count, float* y);
    void (*add_bias)(rounding how, const float* bias, std::size_t rows, std::size_t cols, float* y);

    /// Computes y and what the backward pass needs: `normal` (rows x width) and, per row, variance
    /// + eps.
    void (*norm)(const norm_rows& of, const float* x, float* y, float* normal, float* variance);
    void (*norm_back)(const norm_rows& of, const float* dy, const float* normal,
                      const float* variance, float* dx);
    /// Sums over rows of round(dy * normal), or of dy if normal is null, for columns [begin, end).
    /// Summed in float64 and rounded to float32 once; if `how` rounds, summed in float32 from the
    /// first row to the last, then rounded by `how`.
    void (*column_sums)(rounding how, const float* dy, const float* normal, std::size_t rows,
                        std::size_t cols, std::size_t begin, std::size_t end, float* sums);

    /// Returns the sum of (y - target)^2 of float32 differences; gradient = scale * (y - target).
    double (*squared_error)(const float* y, const float* target, std::size_t count, float scale,
                            float* gradient);
    /// Returns the Kullback-Leibler divergence of softmax(y / t) from softmax(target / t) of one
    /// row; gradient = scale * (softmax(y / t) - softmax(target / t)).
    double (*divergence)(const float* y, const float* target, std::size_t count, float temperature,
                         float scale, float* gradient);

    /// p = softmax(scale * x) of one row: float32 exponentials after subtraction of the maximum,
    /// divided by their sum. All of p is NaN if any input is NaN or +Inf.
    void (*softmax)(const float* x, std::size_t count, float scale, float* p);
    /// The gradient of x: scale * p * (dp - dp.p). dx may be dp.
    void (*softmax_back)(const float* p, const float* dp, std::size_t count, float scale,
                         float* dx);
    /// Returns -log softmax(y)[target] of one row in float64; gradient = scale * (softmax(y) -
    /// onehot(target)). NaN if y contains NaN or +Inf.
    double (*cross_entropy)(const float* y, std::size_t target, std::size_t count, float scale,
                            float* gradient);

    void (*adam)(const adam_step& s, const float* g, std::size_t count, float* p, float* m,
                 float* v);
    /// p = fma(-rate, g, p).
    void (*sgd)(float rate, const float* g, std::size_t count, float* p);

    /// Summed in float64, in lanes.
    double (*dot)(const float* x, const float* y, std::size_t count);
    /// x = value; x = x * by; y = y + by * x, both rounded.
    void (*fill)(float value, std::size_t count, float* x);
    void (*scale)(float by, std::size_t count, float* x);
    void (*add_scaled)(float by, const float* x, std::size_t count, float* y);
    /// Turns the pairs (x[i], x[half + i]) by angles of which these are the cosine and sine, and
    /// back. y is not x.
    void (*rope)(const float* cosine, const float* sine, std::size_t half, const float* x,
                 float* y);
    void (*rope_back)(const float* cosine, const float* sine, std::size_t half, const float* x,
                      float* y);
    /// Columns [begin, end) of x (rows x cols) to rows of y (cols x rows).
    void (*transpose)(const float* x, std::size_t rows, std::size_t cols, std::size_t begin,
                      std::size_t end, float* y);
    /// Standard normal numbers: elements [first, first + count) of the random stream `key`.
    void (*normal)(const base::random_key& key, std::uint64_t first, std::size_t count, float* x);
};

/// The tables that this CPU supports, from the portable one to the fastest.
std::span<const kernels* const> available();
/// The fastest table that this CPU supports.
const kernels& best();
/// The table of that name. Throws base::error: usage if unknown, unavailable if the CPU lacks the
/// instructions.
const kernels& named(std::string_view name);

/// cos(2 pi turns) for 0 <= turns < 1; the same bits on every machine.
double cosine_of_turns(double turns);
/// e^x for -120 <= x <= 120, and the natural logarithm of positive normal numbers; the same bits on
/// every machine.
double exponential(double x);
double logarithm(double x);

/// The portable table, the reference of the others.
extern const kernels scalar_kernels;

/// The kernels of an instruction set, or null if this build lacks it.
const kernels* kernels_for(target t);

}  // namespace mx::lab::simd
