// SPDX-License-Identifier: Apache-2.0
// The kernel tables of this build's instruction sets.
#include "libmx/lab/simd/kernels.hpp"

#include <fmt/format.h>
#include <hwy/highway.h>

#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"

// Tile extents are those of product.cpp.
#define MX_TABLE(space, name, rows, columns)                                                      \
    namespace space {                                                                             \
    void product(const product_tile<float>&);                                                     \
    void product_float64(const product_tile<double>&);                                            \
    void round(rounding, const float*, std::size_t, float*);                                      \
    void exp(const float*, std::size_t, float*);                                                  \
    void log(const float*, std::size_t, float*);                                                  \
    void erf(const float*, std::size_t, float*);                                                  \
    void tanh(const float*, std::size_t, float*);                                                 \
    void activate(activation, rounding, const float*, const float*, std::size_t, float*);         \
    void activate_back(activation, rounding, const float*, const float*, const float*,            \
                       std::size_t, float*, float*);                                              \
    void stepwise_gelu(rounding, const float*, std::size_t, float*);                              \
    void add(const float*, const float*, std::size_t, float*);                                    \
    void add_bias(rounding, const float*, std::size_t, std::size_t, float*);                      \
    void norm(const norm_rows&, const float*, float*, float*, float*);                            \
    void norm_back(const norm_rows&, const float*, const float*, const float*, float*);           \
    void column_sums(rounding, const float*, const float*, std::size_t, std::size_t, std::size_t, \
                     std::size_t, float*);                                                        \
    double squared_error(const float*, const float*, std::size_t, float, float*);                 \
    double divergence(const float*, const float*, std::size_t, float, float, float*);             \
    void softmax(const float*, std::size_t, float, float*);                                       \
    void softmax_back(const float*, const float*, std::size_t, float, float*);                    \
    double cross_entropy(const float*, std::size_t, std::size_t, float, float*);                  \
    void adam(const adam_step&, const float*, std::size_t, float*, float*, float*);               \
    void sgd(float, const float*, std::size_t, float*);                                           \
    double dot(const float*, const float*, std::size_t);                                          \
    void normal(const base::random_key&, std::uint64_t, std::size_t, float*);                     \
    void fill(float, std::size_t, float*);                                                        \
    void scale(float, std::size_t, float*);                                                       \
    void add_scaled(float, const float*, std::size_t, float*);                                    \
    void rope(const float*, const float*, std::size_t, const float*, float*);                     \
    void rope_back(const float*, const float*, std::size_t, const float*, float*);                \
    void transpose(const float*, std::size_t, std::size_t, std::size_t, std::size_t, float*);     \
    constexpr kernels table{                                                                      \
        name,          rows,       columns,  product,      product_float64, round,                \
        exp,           log,        erf,      tanh,         activate,        activate_back,        \
        stepwise_gelu, add,        add_bias, norm,         norm_back,       column_sums,          \
        squared_error, divergence, softmax,  softmax_back, cross_entropy,   adam,                 \
        sgd,           dot,        fill,     scale,        add_scaled,      rope,                 \
        rope_back,     transpose,  normal};                                                       \
    }

namespace mx::lab::simd {

#define MX_KERNELS(space) MX_TABLE_##space
#define MX_TABLE_N_SSE4 MX_TABLE(N_SSE4, "sse4", 8, 8)
#define MX_TABLE_N_AVX2 MX_TABLE(N_AVX2, "avx2", 6, 16)
#define MX_TABLE_N_AVX3 MX_TABLE(N_AVX3, "avx512", 8, 32)
#define MX_TABLE_N_NEON MX_TABLE(N_NEON, "neon", 8, 8)

#include "libmx/base/simd/kernel_tables.inc"

std::span<const kernels* const> available() {
    static const std::vector<const kernels*> all = [] {
        std::vector<const kernels*> list{&scalar_kernels};
        for (const target t : {target::neon, target::sse4, target::avx2, target::avx512}) {
            if (supported(t)) list.push_back(kernels_for(t));
        }
        return list;
    }();
    return all;
}

const kernels& best() { return *available().back(); }

const kernels& named(std::string_view name) {
    if (name.empty()) return best();
    std::vector<std::string_view> names;
    for (const kernels* k : available()) {
        if (k->name == name) return *k;
        names.push_back(k->name);
    }
    base::refuse(base::unknown("backend", name, names));
}

}  // namespace mx::lab::simd
