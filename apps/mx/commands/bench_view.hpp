// SPDX-License-Identifier: Apache-2.0
// The output of `mx bench`: records for programs, tables for people.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libmx/bench/product_throughput.hpp"
#include "libmx/bench/throughput.hpp"
#include "libmx/bench/training_throughput.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

/// Adds the bandwidths of this machine, and how many elements were measured.
void add_memory(report::record& head, const bench::bandwidth& machine,
                std::span<const bench::bandwidth> by_threads, std::uint64_t elements);

report::document bench_document(const bench::throughput_request& request,
                                const bench::throughput& t);

/// For `mx bench --gemm`.
report::document product_bench_document(const bench::product_throughput_request& request,
                                        const std::vector<bench::product_rate>& rates);
/// Declares their members, and #product.
void declare_products(report::document_schema& to);

/// For `mx bench --train`, and with `tokens` for `--eval`: of what is done per second; `note` says
/// what was timed.
report::document training_bench_document(const std::vector<bench::training_rate>& rates,
                                         bool tokens, const std::string& note);
/// Defines #training.
void declare_training(report::document_schema& to);

}  // namespace mx::app
