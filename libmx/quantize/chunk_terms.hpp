// SPDX-License-Identifier: Apache-2.0
// The terms of one chunk of a block and what they add to the block's sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "libmx/block/block_stats.hpp"
#include "libmx/quantize/sum_tree.hpp"

namespace mx::quantize {

/// T is float in units of the scale, double in units of x. Terms that are not set count as zero.
template <typename T>
class chunk_terms {
  public:
    T x[chunk_size] = {};
    T d[chunk_size] = {};
    T e[chunk_size] = {};  ///< d - x
    block::error_part part[chunk_size] = {};

    void set(int i, T x_i, T d_i, T e_i, block::error_part part_i) {
        x[i] = x_i;
        d[i] = d_i;
        e[i] = e_i;
        part[i] = part_i;
    }
    void add_to(block::block_sums& sum) const {
        T error2[chunk_size], x2[chunk_size], xd[chunk_size], d2[chunk_size];
        double error[chunk_size];
        T max_error = 0;
        for (int i = 0; i < chunk_size; ++i) {
            error2[i] = e[i] * e[i];
            x2[i] = x[i] * x[i];
            xd[i] = x[i] * d[i];
            d2[i] = d[i] * d[i];
            // Exact in double also where a directed rounding leaves more than a float's bits.
            error[i] = std::is_same_v<T, float>
                           ? static_cast<double>(d[i]) - static_cast<double>(x[i])
                           : static_cast<double>(e[i]);
            max_error = std::max(max_error, std::abs(e[i]));
        }
        sum.error2 += static_cast<double>(sum_chunk(error2));
        sum.x2 += static_cast<double>(sum_chunk(x2));
        sum.xd += static_cast<double>(sum_chunk(xd));
        sum.d2 += static_cast<double>(sum_chunk(d2));
        sum.error += sum_chunk(error);
        sum.max_error = std::max(sum.max_error, static_cast<double>(max_error));
    }
    /// The squared errors once more, each to its part; those of other parts count as zero.
    void add_to(block::block_parts& parts) const {
        parts.clamp_error2 += error2_of(block::error_part::clamp);
        parts.underflow_error2 += error2_of(block::error_part::underflow);
        parts.grid_error2 += error2_of(block::error_part::grid);
    }

  private:
    double error2_of(block::error_part of) const {
        T error2[chunk_size];
        for (int i = 0; i < chunk_size; ++i) error2[i] = part[i] == of ? e[i] * e[i] : T{0};
        return static_cast<double>(sum_chunk(error2));
    }
};

}  // namespace mx::quantize
