// SPDX-License-Identifier: Apache-2.0
// Casts of values without blocks by backend cuda against the host, byte for byte, on the device.
#include <functional>

#include "libmx/codec/cuda/cuda_backend.hpp"
#include "tests/gpu/card_test.hpp"
#include "tests/parity/element_cases.hpp"

namespace {

using namespace mx::tests;

int compare(const selection& cases) {
    const auto device = mx::codec::cuda::make_caster(nullptr);
    case_count count;
    if (cases.wants("casts")) compare_casts(*device, std::ref(count), cases.every);
    // Several pieces, the last one short.
    const std::size_t values = (std::size_t{5} << 20) / cases.every + 17;
    if (cases.wants("long")) compare_long_cast(*device, values, std::ref(count));
    return count.result(cases.least(500));
}

}  // namespace

int main(int argc, char** argv) { return mx::tests::exit_code_of(argc, argv, compare); }
