// SPDX-License-Identifier: Apache-2.0
// A dot product rounded once.
#pragma once

#include <cstddef>

namespace mx::gemm {

/// c + sum a[k] * b[k], rounded once to the nearest float32 (ties to even). Products must be exact
/// in float64: values of at most 26 significant bits with exponents of float32 or of a scaled
/// element format. NaN, Inf and the sign of zero follow IEEE 754.
float exact_dot(const double* a, const double* b, std::size_t count, float c);

}  // namespace mx::gemm
