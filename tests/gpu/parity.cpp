// SPDX-License-Identifier: Apache-2.0
// The kernels of backend cuda against the reference, byte for byte, on the device.
#include <functional>

#include "libmx/codec/backends.hpp"
#include "tests/gpu/card_test.hpp"
#include "tests/parity/device_cases.hpp"

namespace {

using namespace mx::tests;

int compare(const selection& cases) {
    const mx::codec::backend& device = mx::codec::backend_named("cuda");
    case_count count;
    const auto run = [&](const char* group, auto compare_group) {
        if (cases.wants(group)) compare_group(device, std::ref(count), cases.every);
    };
    run("segments", compare_segments);
    run("dialects", compare_dialect_segments);
    run("matrices", compare_matrices);
    run("rows", compare_rows);
    run("numbers", compare_numbers);
    run("codes", compare_codes);
    return count.result(cases.least(1000));
}

}  // namespace

int main(int argc, char** argv) { return mx::tests::exit_code_of(argc, argv, compare); }
