// SPDX-License-Identifier: Apache-2.0
// A pass of a network that every step repeats.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "libmx/lab/cuda/captured_work.hpp"
#include "libmx/lab/layers.hpp"

namespace mx::lab {

/// On a device, a pass over the same arrays under the same precision becomes a graph
/// (cuda::captured_work), unless it draws random numbers, which differ in each step, or shows its
/// tensors to an observer.
class repeated_pass {
  public:
    /// Does what `work` does. `c` is of the whole network; `arrays` are those that are not the
    /// network's own.
    void run(const layer_context& c, const std::vector<const void*>& arrays, std::size_t tokens,
             const std::function<void()>& work);

  private:
    std::string settings_;
    std::vector<const void*> arrays_;
    std::size_t tokens_ = 0;
    cuda::captured_work captured_;
};

}  // namespace mx::lab
