// SPDX-License-Identifier: Apache-2.0
// The portable kernels, which the others must equal bit for bit.
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "libmx/base/bits.hpp"
#include "libmx/lab/simd/kernels.hpp"

namespace mx::lab::simd {
namespace {

#include "libmx/lab/simd/elementwise.inc"

constexpr std::size_t rows = 8, columns = 8;

template <typename T>
void product_of(const product_tile<T>& t) {
    constexpr std::size_t wide = columns * sizeof(float) / sizeof(T);
    for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t j = 0; j < wide; ++j) {
            T sum = t.first ? T{0} : t.c[r * t.c_row + j];
            for (std::size_t k = 0; k < t.depth; ++k) {
                sum = std::fma(t.a[r * t.a_row + k * t.a_depth], t.b[k * wide + j], sum);
            }
            t.c[r * t.c_row + j] = sum == sum ? sum : static_cast<T>(base::quiet_nan());
        }
    }
}
void product(const product_tile<float>& t) { product_of(t); }
void product_float64(const product_tile<double>& t) { product_of(t); }

}  // namespace

double cosine_of_turns(double turns) { return turn_of(turns).cosine; }
double exponential(double x) { return exp_double(x); }
double logarithm(double x) { return log_double(x); }

constinit const kernels scalar_kernels{
    "scalar",      rows,       columns,  product,      product_float64, round,
    exp,           log,        erf,      tanh,         activate,        activate_back,
    stepwise_gelu, add,        add_bias, norm,         norm_back,       column_sums,
    squared_error, divergence, softmax,  softmax_back, cross_entropy,   adam,
    sgd,           dot,        fill,     scale,        add_scaled,      rope,
    rope_back,     transpose,  normal};

}  // namespace mx::lab::simd
