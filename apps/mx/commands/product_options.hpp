// SPDX-License-Identifier: Apache-2.0
// --accumulate, --k-order, --slices: how products are summed.
#pragma once

#include <string>
#include <vector>

#include "apps/mx/cli.hpp"
#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/multiply.hpp"
#include "libmx/report/record.hpp"

namespace mx::app {

struct product_options {
    std::vector<std::string> models;
    std::string k_order = "ascending";
    std::size_t slices = 1;
};
void declare_products(parser& cmd, product_options& o, const std::string& without_models);

/// The models asked for, each once. Throws base::error (usage).
std::vector<gemm::accumulator> models_of(const product_options& o);
/// The order and the slices. Throws base::error (usage).
gemm::arrangement arrangement_of(const product_options& o);
/// {"k_order", "slices", "alpha", "beta", "accumulate_into_c"}.
report::record arrangement_record(const gemm::arrangement& how);

}  // namespace mx::app
