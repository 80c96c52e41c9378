// SPDX-License-Identifier: Apache-2.0
// Products of a training run on a device.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "libmx/base/cuda/device.hpp"
#include "libmx/lab/cuda/kernels.hpp"
#include "libmx/lab/product.hpp"

namespace mx::lab::cuda {

/// Queues the kernel on a stream of the device. Throws base::error (unavailable).
using starter = void (*)(const product_launch& l, base::cuda::stream& on);

/// Fewer multiply-adds take less time on the CPU than the operands take to the device: an estimate,
/// not a measurement.
inline constexpr double least_multiply_adds = 1 << 24;

/// The bits of lab::multiply. Operands and result are copied in parts through pinned memory; memory
/// on the device is kept for the next product. Used by one thread at a time.
class device_products {
  public:
    /// `on` must outlive it. Takes no memory before the first product. takes() is true from `least`
    /// multiply-adds on, at least 1.
    device_products(base::cuda::device& on, starter start, double least = least_multiply_adds);

    /// Whether this product is for the device.
    bool takes(const operand_view& a, const operand_view& b) const;
    /// As lab::multiply; no extent may be 0. Throws base::error: unavailable, or no_room unless
    /// both operands, the result and the parts fit.
    void multiply(const operand_view& a, const operand_view& b, float* c);

  private:
    base::cuda::lane& next_lane();
    device_matrix send(const operand_view& x, base::cuda::held_memory& to);
    void receive(std::size_t bytes, float* to);

    starter start_;
    double least_;
    base::cuda::held_memory a_, b_, c_;
    std::array<base::cuda::lane, 2> lanes_;  // of parts on their way
    std::size_t turn_ = 0;
};

/// On the first CUDA device. In a build without CUDA, throws base::error (unavailable).
std::unique_ptr<device_products> make_products(double least = least_multiply_adds);

}  // namespace mx::lab::cuda
