// SPDX-License-Identifier: Apache-2.0
// The numbers that PyTorch draws on a CPU after torch.manual_seed(seed), bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

#include "libmx/lab/execution_context.hpp"

namespace mx::lab {

/// The state of torch's default generator, MT19937. Float32 tensors are drawn as by the x86-64
/// builds of PyTorch with AVX2 and FMA, checked on 1.13.0 and 2.15.0; other processors draw normal
/// numbers that differ in the last bits. Source: ATen/native/cpu/DistributionTemplates.h, whose
/// logarithm, sine and cosine are those of the Cephes library in single precision.
class torch_stream {
  public:
    /// The least tensor that normal() draws: PyTorch draws smaller ones otherwise.
    static constexpr std::size_t least_normal = 16;

    /// Uses the low 32 bits of `seed`, as PyTorch does.
    explicit torch_stream(std::uint64_t seed) : engine_(static_cast<std::uint32_t>(seed)) {}

    /// As nn.init.uniform_(x, -bound, bound). `bound` > 0.
    void uniform(double bound, std::span<float> x);
    /// As torch.randn of x.size() >= least_normal numbers, all finite.
    void normal(const execution_context& on, std::span<float> x);
    /// Leaves out the next `count` tensors of normal(), each of `size` numbers.
    void skip_normal(std::uint64_t count, std::size_t size);

  private:
    float unit();

    std::mt19937 engine_;
};

}  // namespace mx::lab
