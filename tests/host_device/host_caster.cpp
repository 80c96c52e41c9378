// SPDX-License-Identifier: Apache-2.0
#include "tests/host_device/host_caster.hpp"

namespace mx::codec::cuda {

void start_on_host(const element_launch& l, base::cuda::stream& on) {
    static_cast<base::cuda::host_stream*>(on.handle())->queue([l] {
        element_work work = l.work;
        settle(work);
        std::uint32_t without_code = l.count;
        for (std::uint32_t i = 0; i < l.count; ++i) {
            if (!cast_value(work, l, i) && i < without_code) without_code = i;
        }
        if (without_code < *l.without_code) *l.without_code = without_code;
    });
}

}  // namespace mx::codec::cuda
