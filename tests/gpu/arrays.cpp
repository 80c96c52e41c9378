// SPDX-License-Identifier: Apache-2.0
// Arrays that stay on the device against the host, byte for byte, and the functions that users call
// with a stream of their own.
#include <functional>

#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/codec/cuda/cuda_backend.hpp"
#include "tests/gpu/card_test.hpp"
#include "tests/parity/array_cases.hpp"

namespace {

using namespace mx::tests;
namespace cuda = mx::base::cuda;
using mx::codec::cuda::array_quantizer;

int compare(const selection& cases) {
    case_count count;
    const auto stream = cuda::first_device().make_stream();
    const array_device there{cuda::first_device(), [&](std::uint64_t elements, const auto& work) {
                                 const auto ordered = cuda::device_of_stream(0, stream->handle());
                                 cuda::lane lane(*ordered);
                                 array_quantizer by(*ordered, lane,
                                                    mx::codec::cuda::starters_for(0), elements);
                                 work(by);
                                 stream->wait();
                             }};
    if (cases.wants("recipes")) compare_arrays(there, cases.every, std::ref(count));
    if (cases.wants("casts")) compare_array_casts(there, std::ref(count));
    return count.result(cases.least(5000));
}

}  // namespace

int main(int argc, char** argv) { return mx::tests::exit_code_of(argc, argv, compare); }
