// SPDX-License-Identifier: Apache-2.0
// What the rules share. For .cpp files of this folder only.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libmx/studies/lint/lint.hpp"

namespace mx::lint {

/// A checkpoint while the rules look at it.
class inspection {
  public:
    inspection(const checkpoint& c, const lint_request& r) : of(c), request(r) {}

    const checkpoint& of;
    const lint_request& request;
    std::vector<finding> found;
    bool all_scales = true;

    const io::tensor_info& info(std::size_t array) const { return of.arrays[array].info(); }
    void add(std::string_view rule, severity is, std::size_t array, std::string message,
             std::string effect = {}, std::string repair = {}) {
        found.push_back({rule, is, info(array).file, info(array).name, std::move(message),
                         std::move(effect), std::move(repair)});
    }
    /// Stored elements as float32: all, or without --values the first that `most` bytes hold.
    std::vector<float> numbers(std::size_t array, std::uint64_t most);
    /// The only number of an array; none if it has several, or they are no numbers.
    std::optional<float> number(std::size_t array);
};

/// "model.layers.0.self_attn.q_proj" of "...q_proj.weight", "...q_proj.weight_packed".
std::string module_of(const io::pairing& p);

void check_scales(inspection& at);  ///< missing-scale, orphan-scale, scale-value, scale-shape
void check_fused(inspection& at);   ///< fused-scales, default-scale
void check_config(inspection& at);  ///< config, tied
void check_index(inspection& at);   ///< index
void check_values(inspection& at);  ///< value

}  // namespace mx::lint
