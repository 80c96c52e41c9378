// SPDX-License-Identifier: Apache-2.0
// Every metric of a tensor, from exact counts and sums.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libmx/oracle/block.hpp"

namespace mx::oracle {

/// A tensor as `batch` matrices in C order; `id` is the key of its random draws.
struct tensor {
    std::span<const float> values;
    std::uint64_t batch = 1;
    std::uint64_t rows = 1;
    std::uint64_t cols = 0;
    std::uint64_t id = 0;
};

struct block_counts {
    std::uint64_t blocks = 0;
    std::uint64_t zero = 0;
    std::uint64_t eligible = 0;
    std::uint64_t collapsed = 0;
    std::uint64_t saturated = 0;
    std::uint64_t dead = 0;
};

/// Exact counts and sums, and the blocks in grid order.
struct measurement {
    recipe under;
    element_counts count;
    block_counts block;
    exact_sums sum;
    std::array<std::uint64_t, 256> code_histogram{};
    std::array<std::uint64_t, 256> scale_histogram{};
    std::array<std::uint64_t, 32> amax_mantissa_histogram{};  ///< finite block maxima != 0
    /// Number of blocks by bin of min |x != 0| / max |x|: bin k is (2^(-(k+1)/16), 2^(-k/16)].
    std::map<int, std::uint64_t> spread_histogram;
    std::vector<quantized_block> blocks;
};

/// Quantizes every block of `t` with `r`. Random draws are keyed by the index of the element in the
/// tensor.
measurement measure(const tensor& t, const recipe& r);

/// The metrics by name, nested ones as `squared_error.clamp`; nullopt if undefined. Metrics of sums
/// are functions of the exact sums, each rounded to double once; rates and the entropy are rounded
/// once.
std::map<std::string, std::optional<double>> metrics_of(const measurement& m);

/// metrics_of(measure(t, r)).
std::map<std::string, std::optional<double>> metrics_of(const tensor& t, const recipe& r);

}  // namespace mx::oracle
