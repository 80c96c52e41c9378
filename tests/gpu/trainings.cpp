// SPDX-License-Identifier: Apache-2.0
// Training runs by backend cuda against the CPU, on the device: products bit for bit, files of runs
// byte for byte.
#include <iostream>

#include "tests/gpu/card_test.hpp"
#include "tests/gpu/thinning.hpp"
#include "tests/parity/training_cases.hpp"

namespace {

int compare(std::uint64_t every) {
    if (!mx::base::cuda::missing().empty()) {
        std::cout << "skipped: backend cuda: " << mx::base::cuda::missing() << "\n";
        return 77;
    }
    std::size_t cases = 0, different = 0;
    const auto on_case = [&](const std::string& what, const std::string& difference) {
        ++cases;
        if (difference.empty()) return;
        ++different;
        std::cout << what << ": " << difference << "\n";
    };
    const auto make = [] { return mx::lab::cuda::make_products(1); };
    mx::tests::compare_products(make, every, on_case);
    mx::tests::compare_trainings(make, on_case);
    std::cout << cases << " cases, " << different << " differ\n";
    return cases > 100 / every && different == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    return mx::tests::exit_code_of([&] { return compare(mx::tests::every_of(argc, argv)); });
}
