// SPDX-License-Identifier: Apache-2.0
// The terms of one chunk of a block and what they add to the block's sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "libmx/block/block_stats.hpp"
#include "libmx/codec/sum_tree.hpp"

namespace mx::codec {

/// What one element adds to the sums of its block. T is float in units of the scale, double in
/// units of x.
template <typename T>
struct element_term {
    T x, d, e;  ///< e: d - x

    MX_HD T error2() const { return e * e; }
    MX_HD T x2() const { return x * x; }
    MX_HD T xd() const { return x * d; }
    MX_HD T d2() const { return d * d; }
    /// Exact in double also where a directed rounding leaves more than a float's bits.
    MX_HD double error() const {
        return std::is_same_v<T, float> ? static_cast<double>(d) - static_cast<double>(x)
                                        : static_cast<double>(e);
    }
};

/// T is float in units of the scale, double in units of x. Terms that are not set count as zero.
template <typename T>
class chunk_terms {
  public:
    T x[chunk_size] = {};
    T d[chunk_size] = {};
    T e[chunk_size] = {};
    block::error_part part[chunk_size] = {};

    MX_HD void set(int i, T x_i, T d_i, T e_i, block::error_part part_i) {
        x[i] = x_i;
        d[i] = d_i;
        e[i] = e_i;
        part[i] = part_i;
    }
    MX_HD void set(int i, const element_term<T>& t, block::error_part part_i) {
        set(i, t.x, t.d, t.e, part_i);
    }
    MX_HD element_term<T> term(int i) const { return {x[i], d[i], e[i]}; }
    MX_HD void add_to(block::block_sums& sum) const {
        T error2[chunk_size], x2[chunk_size], xd[chunk_size], d2[chunk_size];
        double error[chunk_size];
        T max_error = 0;
        for (int i = 0; i < chunk_size; ++i) {
            error2[i] = term(i).error2();
            x2[i] = term(i).x2();
            xd[i] = term(i).xd();
            d2[i] = term(i).d2();
            error[i] = term(i).error();
            max_error = std::max(max_error, std::abs(term(i).e));
        }
        sum.error2 += static_cast<double>(sum_chunk(error2));
        sum.x2 += static_cast<double>(sum_chunk(x2));
        sum.xd += static_cast<double>(sum_chunk(xd));
        sum.d2 += static_cast<double>(sum_chunk(d2));
        sum.error += sum_chunk(error);
        sum.max_error = std::max(sum.max_error, static_cast<double>(max_error));
    }
    /// The squared errors once more, each to its part; those of other parts count as zero.
    MX_HD void add_to(block::block_parts& parts) const {
        parts.clamp_error2 += error2_of(block::error_part::clamp);
        parts.underflow_error2 += error2_of(block::error_part::underflow);
        parts.grid_error2 += error2_of(block::error_part::grid);
    }

  private:
    MX_HD double error2_of(block::error_part of) const {
        T error2[chunk_size];
        for (int i = 0; i < chunk_size; ++i) error2[i] = part[i] == of ? term(i).error2() : T{0};
        return static_cast<double>(sum_chunk(error2));
    }
};

/// Adds a chunk to the sums of its block.
template <typename T>
MX_HD_CALL inline void add_chunk(const chunk_terms<T>& terms, bool parts, block::block_sums& sum,
                                 block::block_parts& part) {
    terms.add_to(sum);
    if (parts) terms.add_to(part);
}

}  // namespace mx::codec
