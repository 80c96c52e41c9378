// SPDX-License-Identifier: Apache-2.0
// The kernels of arrays for streams of a host_device, and a count of compared cases.
#pragma once

#include <cstddef>
#include <string>

#include "libmx/base/status.hpp"
#include "libmx/codec/cuda/array_quantizer.hpp"
#include "tests/catch.hpp"
#include "tests/parity/kernels_on_host/entries.hpp"

namespace card {

inline void check(int code) {
    if (code != 0) throw mx::base::error(mx::base::error_kind::unavailable, "no such grid");
}

inline const mx::codec::cuda::array_starters array_kernels{
    [](const mx::codec::cuda::launch& l, mx::base::cuda::stream& on) {
        check(enqueue_segments(&l, on.handle()));
    },
    [](const mx::codec::cuda::element_launch& l, mx::base::cuda::stream& on) {
        check(enqueue_elements(&l, on.handle()));
    },
    [](const mx::codec::cuda::array_work& what, mx::base::cuda::stream& on) {
        check(enqueue_work(&what, on.handle()));
    }};

struct counted_cases {
    std::size_t count = 0;
    void operator()(const std::string& what, const std::string& difference) {
        CAPTURE(what);
        CHECK(difference == "");
        ++count;
    }
};

}  // namespace card
