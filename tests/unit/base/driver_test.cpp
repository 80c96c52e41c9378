// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/cuda/device.hpp"
#include "tests/catch.hpp"

using mx::base::cuda::driver_obstacle;

TEST_CASE("a driver older than the runtime is named, with what helps") {
    CHECK(driver_obstacle(0, 13000) == "no NVIDIA driver");
    CHECK(driver_obstacle(12040, 13000) ==
          "the NVIDIA driver serves CUDA up to 12.4, and this program was built with CUDA 13.0: "
          "install a driver for CUDA 13 or later, on data center GPUs the package cuda-compat-13-0 "
          "instead, or build with an older CUDA, from 12.8 on");
    CHECK(driver_obstacle(11080, 12080).find("cuda-compat-12-8") != std::string::npos);
    // Within a major version, and of a later one.
    CHECK(driver_obstacle(13000, 13010).empty());
    CHECK(driver_obstacle(12000, 12080).empty());
    CHECK(driver_obstacle(13000, 12080).empty());
}
