// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/commands/device_words.hpp"

#include <fmt/format.h>

namespace mx::app {

std::string device_words(const base::cuda::device_facts& f) {
    const std::string clock = f.clock_mhz == 0 ? "" : fmt::format(", up to {} MHz", f.clock_mhz);
    return fmt::format("{}, sm_{}{}, {} SMs{}, {:.1f} GiB", f.name, f.major, f.minor,
                       f.multiprocessors, clock, static_cast<double>(f.memory) / (1 << 30));
}

std::string cuda_version_text(int version) {
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace mx::app
