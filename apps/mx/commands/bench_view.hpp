// SPDX-License-Identifier: Apache-2.0
// What `mx bench` shows: records for programs, the roofline table for people.
#pragma once

#include "libmx/bench/throughput.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

report::document bench_document(const bench::throughput_request& request,
                                const bench::throughput& t);

}  // namespace mx::app
