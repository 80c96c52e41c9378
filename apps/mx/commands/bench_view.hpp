// SPDX-License-Identifier: Apache-2.0
// The output of `mx bench`: records for programs, tables for people.
#pragma once

#include "libmx/bench/product_throughput.hpp"
#include "libmx/bench/throughput.hpp"
#include "libmx/bench/training_throughput.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

report::document bench_document(const bench::throughput_request& request,
                                const bench::throughput& t);

/// For `mx bench --gemm`.
report::document product_bench_document(const bench::product_throughput_request& request,
                                        const std::vector<bench::product_rate>& rates);

/// For `mx bench --train`, and with `tokens` for `--eval`: of what is done per second; `note` says
/// what was timed.
report::document training_bench_document(const std::vector<bench::training_rate>& rates,
                                         bool tokens, const std::string& note);

}  // namespace mx::app
