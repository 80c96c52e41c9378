// SPDX-License-Identifier: Apache-2.0
// The steps of a forward pass between products: arithmetic in float64, results rounded once to the
// type that the pass stores. One table per instruction set, all with the same bits. Kernels neither
// allocate, throw nor start threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "libmx/base/simd/targets.hpp"
#include "libmx/llm/model_shape.hpp"

namespace mx::eval::simd {

using base::simd::target;
using llm::gate_function, llm::rope_pairs;

/// Running sums of one token over parts of the vocabulary, for the log-likelihoods and the
/// divergence of two sets of logits.
struct logit_sums {
    double largest = 0, sum = 0;  ///< sum of exp(z - largest)
    double weighted = 0;          ///< sum of exp(z - largest) z
    std::size_t top = 0;          ///< index of `largest`, the lowest of equals
};

template <typename T>
struct kernels_of {
    /// y = x / sqrt(mean(x^2) + eps) * gain, by rows; y may be x.
    void (*norm)(const T* x, std::size_t rows, std::size_t width, double eps, const double* gain,
                 T* y);
    /// h = phi(gate) * up; h may be gate or up.
    void (*activate)(gate_function phi, const T* gate, const T* up, std::size_t count, T* h);
    /// p = softmax(scale * x) of one row; p may be x.
    void (*softmax)(const T* x, std::size_t count, double scale, T* p);
    /// Turns features (i, j) of one head by angles whose cosine and sine are given; j is i + half,
    /// or the pairs are neighbours.
    void (*turn)(const T* x, std::size_t half, const double* cosine, const double* sine,
                 rope_pairs pairs, T* y);
    /// y += x.
    void (*add)(const T* x, std::size_t count, T* y);
    /// Adds `count` logits, which begin at index `first`, to the sums of their token. `e` receives
    /// exp(z - largest).
    void (*sum_logits)(const T* z, std::size_t count, std::size_t first, logit_sums& to, double* e);
    /// Adds the sum of e (p - z) to `crossed`, where p are logits of the base, e what sum_logits
    /// gave of them, `base` its sums after that and `before` its maximum before.
    void (*add_crossed)(const double* e, const T* p, const T* z, std::size_t count,
                        const logit_sums& base, double before, double& crossed);
};

struct kernels {
    const kernels_of<float>* float32;
    const kernels_of<double>* float64;
};
template <typename T>
const kernels_of<T>& of(const kernels& k) {
    if constexpr (sizeof(T) == sizeof(float)) {
        return *k.float32;
    } else {
        return *k.float64;
    }
}

/// The kernels of an instruction set by its name ("scalar", "avx2", ...).
const kernels& named(std::string_view name);

/// The kernels of an instruction set, or null if this build lacks it.
const kernels* kernels_for(target t);
extern const kernels scalar_kernels;

/// e^x and the natural logarithm, to a few units in the last place of float64, and cosine and sine
/// of 2 pi u; the same bits on every machine.
double exponential(double x);
double logarithm(double x);
double cosine_of_turns(double u);
double sine_of_turns(double u);

}  // namespace mx::eval::simd
