// SPDX-License-Identifier: Apache-2.0
#include "tests/host_device/host_quantizer.hpp"

#include "libmx/codec/cuda/code_values.hpp"
#include "libmx/codec/cuda/device_quantizer.hpp"
#include "tests/host_device/host_device.hpp"
#include "tests/host_device/instruction_stand_in.hpp"
#include "tests/host_device/ocp_on_host.hpp"

namespace mx::codec::cuda {
namespace {

template <typename Converter>
void start(const launch& l, base::cuda::stream& on) {
    static_cast<base::cuda::host_stream&>(on).queue([l] {
        for (std::uint64_t i = 0; i < l.codes.groups(); ++i) widen_codes(l.codes, i);
        ocp_on_host<Converter>(l);
        dialects_on_host(l);
    });
}

base::cuda::host_device& host() {
    static base::cuda::host_device one;
    return one;
}

}  // namespace

void start_on_host(const launch& l, base::cuda::stream& on) { start<grid_converter>(l, on); }

std::unique_ptr<quantizer> make_host_quantizer() {
    return make_device_quantizer(host(), start_on_host);
}

std::unique_ptr<quantizer> make_instruction_quantizer() {
    return make_device_quantizer(host(), start<instruction_stand_in>);
}

}  // namespace mx::codec::cuda
