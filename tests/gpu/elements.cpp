// SPDX-License-Identifier: Apache-2.0
// Casts of values without blocks by backend cuda against the host, byte for byte, on the device.
#include <iostream>

#include "libmx/codec/cuda/cuda_backend.hpp"
#include "tests/gpu/card_test.hpp"
#include "tests/parity/element_cases.hpp"

namespace {

int compare() {
    if (!mx::base::cuda::missing().empty()) {
        std::cout << "skipped: backend cuda: " << mx::base::cuda::missing() << "\n";
        return 77;
    }
    const auto device = mx::codec::cuda::make_caster(nullptr);
    std::size_t cases = 0, different = 0;
    const auto on_case = [&](const std::string& what, const std::string& difference) {
        ++cases;
        if (difference.empty()) return;
        ++different;
        std::cout << what << ": " << difference << "\n";
    };
    mx::tests::compare_casts(*device, on_case);
    // Several pieces, the last one short.
    mx::tests::compare_long_cast(*device, (std::size_t{5} << 20) + 17, on_case);
    std::cout << cases << " cases, " << different << " differ\n";
    return cases > 500 && different == 0 ? 0 : 1;
}

}  // namespace

int main() {
    return mx::tests::exit_code_of([&] { return compare(); });
}
