// SPDX-License-Identifier: Apache-2.0
// What is asked: a card, or the emulator in its place.
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

/// A product of a library: operands made from a seed (generated_a, generated_b).
struct library_problem {
    vectors::mma_case what;  ///< steps cover all of k
    std::uint64_t seed = 0;
    std::size_t rows = 0, columns = 0;
    bool bf16 = false;  ///< outputs; else float32
    /// Hopper's fp8: whether the library may leave sums in the matrix unit for all of k.
    bool fast_accumulation = false;
};
struct library_product {
    std::vector<std::uint32_t> outputs;        ///< bits, rows x columns
    std::map<std::string, std::string> facts;  ///< the algorithm, as the library reports it
};

class device {
  public:
    virtual ~device() = default;
    /// D of the tiles one after the other, 16 x 8 bits each.
    virtual std::vector<std::uint32_t> multiply(const instruction& i, std::size_t steps,
                                                bool accumulate,
                                                std::span<const vectors::mma_tile> tiles) = 0;
    /// Codes of `words`: float32 bits, or 16-bit words of bf16x2 and f16x2 sources.
    virtual std::vector<std::uint8_t> narrow(const vectors::narrowing& row,
                                             std::span<const std::uint32_t> words) = 0;
    /// Per cell the sum of hash_term(x, code) over every `stride`-th float32 x of it.
    virtual std::vector<std::uint64_t> hash_cells(const vectors::narrowing& row,
                                                  std::uint32_t stride) = 0;
    /// f16 or bf16 bits of the codes 0 to `count` - 1.
    virtual std::vector<std::uint16_t> widen(const vectors::widening& row, std::size_t count) = 0;
    virtual std::vector<std::uint32_t> narrow_stochastically(
        const vectors::stochastic_narrowing& row,
        std::span<const vectors::stochastic_input> inputs) = 0;
    /// Throws base::error (unavailable) where the library is missing or declines.
    virtual library_product multiply_by_library(const library_problem& problem) = 0;
};

/// The emulator as the chip `c`.
std::unique_ptr<device> make_emulated_device(const chip& c);

/// The first card. Both throw base::error (unavailable) in a build without CUDA and where there is
/// no card.
device_facts cuda_facts();
std::unique_ptr<device> make_cuda_device();

}  // namespace mx::capture
