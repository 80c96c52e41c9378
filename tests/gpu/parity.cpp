// SPDX-License-Identifier: Apache-2.0
// The kernels of backend cuda against the reference, byte for byte, on the device.
#include <iostream>

#include "libmx/codec/backends.hpp"
#include "libmx/codec/cuda/cuda_backend.hpp"
#include "tests/gpu/card_test.hpp"
#include "tests/gpu/thinning.hpp"
#include "tests/parity/counted_cases.hpp"
#include "tests/parity/device_cases.hpp"

namespace {

int compare(std::uint64_t every) {
    if (!mx::base::cuda::missing().empty()) {
        std::cout << "skipped: backend cuda: " << mx::base::cuda::missing() << "\n";
        return 77;
    }
    const mx::codec::backend& device = mx::codec::backend_named("cuda");
    std::size_t cases = 0, different = 0;
    const auto on_case = [&](const std::string& what, const std::string& difference) {
        ++cases;
        if (difference.empty()) return;
        ++different;
        std::cout << what << ": " << difference << "\n";
    };
    mx::tests::compare_segments(device, on_case, every);
    mx::tests::compare_general_segments(device, on_case, every);
    mx::tests::compare_matrices(device, on_case);
    mx::tests::compare_rows(device, on_case, every);
    mx::tests::compare_numbers(device, on_case, every);
    mx::tests::compare_codes(device, on_case);
    mx::tests::compare_counts(device, 1200, false, on_case);
    std::cout << cases << " cases, " << different << " differ\n";
    return cases > 1000 / every && different == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    return mx::tests::exit_code_of([&] { return compare(mx::tests::every_of(argc, argv)); });
}
