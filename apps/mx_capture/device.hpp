// SPDX-License-Identifier: Apache-2.0
// The source of recorded results: a GPU, or the emulator instead.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/mx_capture/instructions.hpp"
#include "libmx/conformance/vectors/conversion_inputs.hpp"

namespace mx::capture {

struct device_facts {
    std::string name;
    int major = 0, minor = 0;               ///< compute capability
    std::string driver, runtime, cublaslt;  ///< versions; empty where there is none
    bool hardware = false;
};

/// A library product: operands generated from a seed (generated_a, generated_b).
struct library_problem {
    vectors::mma_case what;  ///< steps cover all of k
    std::uint64_t seed = 0;
    std::size_t rows = 0, columns = 0;
    bool bf16 = false;  ///< outputs; else float32
    /// Hopper's fp8: whether the library may accumulate in the matrix unit over all of k.
    bool fast_accumulation = false;
};
struct library_product {
    std::vector<std::uint32_t> outputs;        ///< bits, rows x columns
    std::map<std::string, std::string> facts;  ///< the algorithm, as the library reports it
};

class device {
  public:
    virtual ~device() = default;
    /// D of consecutive tiles, 16 x 8 values each.
    virtual std::vector<std::uint32_t> multiply(const instruction& i, std::size_t steps,
                                                bool accumulate,
                                                std::span<const vectors::mma_tile> tiles) = 0;
    /// Codes of `words`: float32 bits, or 16-bit words of bf16x2 and f16x2 sources.
    virtual std::vector<std::uint8_t> narrow(const vectors::narrowing& row,
                                             std::span<const std::uint32_t> words) = 0;
    /// For each cell, the sum of hash_term(x, code) over every `stride`-th float32 x in it.
    virtual std::vector<std::uint64_t> hash_cells(const vectors::narrowing& row,
                                                  std::uint32_t stride) = 0;
    /// f16 or bf16 bits of the codes 0 to `count` - 1.
    virtual std::vector<std::uint16_t> widen(const vectors::widening& row, std::size_t count) = 0;
    virtual std::vector<std::uint32_t> narrow_stochastically(
        const vectors::stochastic_narrowing& row,
        std::span<const vectors::stochastic_input> inputs) = 0;
    /// Throws base::error (unavailable) if the library is missing or refuses the product.
    virtual library_product multiply_by_library(const library_problem& problem) = 0;
};

/// The emulator of the chip `c`.
std::unique_ptr<device> make_emulated_device(const chip& c);

/// The first GPU. Both throw base::error (unavailable) in a build without CUDA and without a GPU.
device_facts cuda_facts();
std::unique_ptr<device> make_cuda_device();

}  // namespace mx::capture
