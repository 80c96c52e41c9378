// SPDX-License-Identifier: Apache-2.0
// What `mx bench` shows: records for programs, the roofline table for people.
#pragma once

#include "libmx/pipeline/throughput.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

report::document bench_document(const pipeline::throughput_request& request,
                                const pipeline::throughput& t);

}  // namespace mx::app
