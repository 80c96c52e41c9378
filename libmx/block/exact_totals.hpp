// SPDX-License-Identifier: Apache-2.0
// The sums behind the metrics, without rounding: independent of the order of elements and of
// segments, threads, parts and backends (docs/design/determinism.md).
#pragma once

#include <cmath>

#include "libmx/base/exact_sum.hpp"
#include "libmx/block/block_stats.hpp"

namespace mx::block {

/// An exact dequantized value, d = offset + product: both are doubles, their sum may not be.
struct exact_value {
    double offset;   ///< O, 0 without one
    double product;  ///< S * q
};

/// Adds the exact product a * b. Neither it nor its rounding error may leave the range of normal
/// doubles; products of float32 never do.
template <typename Sum>
MX_HD inline void add_product(Sum& to, double a, double b) {
    const double high = a * b;
    to.add(high);
    to.add(std::fma(a, b, -high));
}

/// Exact sums over finite, unpoisoned elements x and their exact dequantized values d. Trivially
/// copyable; all zeros if empty.
struct exact_totals {
    base::exact_sum x, x2, d, d2, xd;
    base::exact_sum clamp, underflow;  ///< (d - x)^2 of these parts; zeros unless asked for

    /// Adds an element; with `with_part`, also to the sum of its part.
    MX_HD_CALL void add(float element, const exact_value& value, error_part part, bool with_part);

    /// Adds (d - x)^2 of an element to the sum of its part.
    MX_HD_CALL void add_part(float element, const exact_value& value, error_part part);

    void merge(const exact_totals& other);

    /// Sum of (d - x)^2: d2 - 2 xd + x2.
    base::exact_sum error2() const;
    /// Sum of d - x.
    base::exact_sum error() const;
    /// error2 without the parts of clamp and underflow.
    base::exact_sum grid() const;

    friend bool operator==(const exact_totals& a, const exact_totals& b);
};

/// Calls f(member of a, member of b, ...) for each sum.
template <typename F, typename... T>
constexpr void each_exact_sum(F&& f, T&&... of) {
    f(of.x...);
    f(of.x2...);
    f(of.d...);
    f(of.d2...);
    f(of.xd...);
    f(of.clamp...);
    f(of.underflow...);
}

/// Each sum rounded once; `max_error` is unchanged.
void round_to(const exact_totals& from, block_sums& to);

// The same for sums of any type with add(double).

template <typename Totals>
MX_HD inline void add_part(Totals& totals, float element, const exact_value& value,
                           error_part part) {
    if (part == error_part::grid) return;
    auto& to = part == error_part::clamp ? totals.clamp : totals.underflow;
    const auto v = static_cast<double>(element);
    const double offset = value.offset, product = value.product;
    to.add(v * v);
    add_product(to, product, product);
    add_product(to, -2 * v, product);
    if (offset == 0) return;
    to.add(offset * offset);
    add_product(to, 2 * offset, product);
    to.add(-2 * v * offset);
}

template <typename Totals>
MX_HD inline void add_element(Totals& to, float element, const exact_value& value, error_part part,
                              bool with_part) {
    const auto v = static_cast<double>(element);
    const double offset = value.offset, product = value.product;
    to.x.add(v);
    to.x2.add(v * v);
    to.d.add(product);
    add_product(to.d2, product, product);
    add_product(to.xd, v, product);
    if (offset != 0) {
        to.d.add(offset);
        to.d2.add(offset * offset);
        add_product(to.d2, 2 * offset, product);
        to.xd.add(v * offset);
    }
    if (with_part) add_part(to, element, value, part);
}

MX_HD_CALL inline void exact_totals::add(float element, const exact_value& value, error_part part,
                                         bool with_part) {
    add_element(*this, element, value, part, with_part);
}

MX_HD_CALL inline void exact_totals::add_part(float element, const exact_value& value,
                                              error_part part) {
    block::add_part(*this, element, value, part);
}

}  // namespace mx::block
