// SPDX-License-Identifier: Apache-2.0
// Arrays that stay on a device, by the kernels on the host: everything as on the CPU, byte for
// byte.
#include "tests/catch.hpp"
#include "tests/host_device/host_device.hpp"
#include "tests/parity/array_cases.hpp"
#include "tests/parity/kernels_on_host/array_kernels.hpp"

namespace {

using card::counted_cases;
using mx::base::cuda::host_device;
using mx::base::cuda::memory_kind;
using mx::codec::cuda::array_quantizer;

// Memory of arrays lives until work that uses it is done, as that of a caller does.
mx::tests::array_device device_of(host_device& memory) {
    return {memory, [&memory](std::uint64_t elements, const auto& work) {
                mx::base::cuda::host_stream on;
                mx::base::cuda::host_stream_device ordered(memory, on);
                {
                    mx::base::cuda::lane lane(ordered);
                    array_quantizer by(ordered, lane, card::array_kernels, elements);
                    work(by);
                }
                on.wait();
            }};
}

}  // namespace

TEST_CASE("arrays on a device leave the bytes of the host under generated recipes") {
    host_device memory;
    counted_cases all;
    const std::size_t without = mx::tests::compare_arrays(device_of(memory), 23, std::ref(all));
    CHECK(all.count > 300);
    CHECK(without < all.count / 3);
    CHECK(memory.held(memory_kind::device) == 0);
    CHECK(memory.held(memory_kind::pinned) == 0);
}

TEST_CASE("casts of arrays on a device leave the bytes of the host") {
    host_device memory;
    counted_cases all;
    mx::tests::compare_array_casts(device_of(memory), std::ref(all));
    CHECK(all.count > 8);
}
