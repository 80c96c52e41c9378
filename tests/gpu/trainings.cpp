// SPDX-License-Identifier: Apache-2.0
// Training runs by backend cuda against the CPU, on the device: products bit for bit, files of runs
// byte for byte.
#include <functional>

#include "tests/gpu/card_test.hpp"
#include "tests/parity/training_cases.hpp"

namespace {

using namespace mx::tests;

int compare(const selection& cases) {
    case_count count;
    const auto make = [] { return mx::lab::cuda::make_arrays(); };
    if (cases.wants("products")) compare_products(make, cases.every, std::ref(count));
    if (cases.wants("graphs")) compare_graphs(make, std::ref(count));
    if (cases.wants("runs")) compare_trainings(make, cases.every, std::ref(count));
    return count.result(cases.least(200));
}

}  // namespace

int main(int argc, char** argv) { return mx::tests::exit_code_of(argc, argv, compare); }
