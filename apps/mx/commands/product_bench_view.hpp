// SPDX-License-Identifier: Apache-2.0
// What `mx bench --gemm` shows.
#pragma once

#include "libmx/bench/product_throughput.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

report::document product_bench_document(const bench::product_throughput_request& request,
                                        const std::vector<bench::product_rate>& rates);

}  // namespace mx::app
