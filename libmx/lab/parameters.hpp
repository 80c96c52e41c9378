// SPDX-License-Identifier: Apache-2.0
// The named parameters of a network, contiguous in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/tensor/shape.hpp"

namespace mx::lab {

enum class parameter_kind : std::uint8_t { weight, bias, norm_gain, norm_bias };

struct parameter {
    std::string name;
    parameter_kind kind;
    tensor::shape shape;
    std::size_t first, count;  ///< its range among all numbers
};

/// The parameters of a network. Values, gradients and moments are arrays of `size()` floats.
class parameter_list {
  public:
    void add(std::string name, parameter_kind kind, tensor::shape shape);

    const std::vector<parameter>& all() const { return all_; }
    std::size_t size() const { return size_; }

  private:
    std::vector<parameter> all_;
    std::size_t size_ = 0;
};

/// The values of `p` in such an array, a vector or a span.
template <typename Values>
auto* of(Values&& values, const parameter& p) {
    return values.data() + p.first;
}

}  // namespace mx::lab
