// SPDX-License-Identifier: Apache-2.0
// Test cases for arrays that stay on a device, run on the device and on the host instead of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "libmx/base/cuda/device.hpp"
#include "libmx/codec/cuda/array_quantizer.hpp"

namespace mx::tests {

/// A device: memory for arrays, and work(quantizer), which is queued and then waited for. A launch
/// has at most so many elements.
struct array_device {
    base::cuda::device& memory;
    std::function<void(std::uint64_t launch_elements,
                       const std::function<void(codec::cuda::array_quantizer&)>& work)>
        run;
};

/// Compares fake_quantize, quantize, dequantize and measure of engine/cuda/arrays.hpp with those of
/// the host, byte for byte, under generated recipes: arrays of several shapes, types and
/// alignments, in one launch and in many. Calls `on_case` with a description and the difference, ""
/// if there is none. One case in `every`. Returns the number of recipes that the device has no
/// kernels for.
std::size_t compare_arrays(
    const array_device& d, std::uint64_t every,
    const std::function<void(const std::string&, const std::string&)>& on_case);

/// The same of casts.
void compare_array_casts(
    const array_device& d,
    const std::function<void(const std::string&, const std::string&)>& on_case);

}  // namespace mx::tests
