// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/backends.hpp"

#include <fmt/format.h>

#include <optional>

#include "apps/mx/settings.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/block_params.hpp"

namespace mx::app {

const codec::backend& chosen_backend(const std::string& option) {
    setting_value said{option, "--backend"};
    if (option.empty()) {
        const std::optional<setting_value> set = setting_of("backend");
        if (!set) return codec::best_backend();
        said = *set;
    }
    try {
        return codec::backend_named(said.value);
    } catch (const base::error& e) {
        throw base::error(e.kind(), fmt::format("{}: {}", said.origin, e.message()));
    }
}

void print_backend(const codec::backend& b, int threads, std::span<const codec::recipe> recipes) {
    remark(fmt::format("backend {}, {}", b.name, threads_text(base::thread_count(threads))));
    for (const codec::recipe& r : recipes) {
        if (b.takes == nullptr || b.takes(codec::params_of(r))) continue;
        remark(fmt::format("recipe {}: by backend scalar, as backend {} has no kernels for it",
                           codec::to_string(r), b.name));
    }
}

std::string device_text(const base::cuda::device_facts& f) {
    const std::string clock = f.clock_mhz == 0 ? "" : fmt::format(", up to {} MHz", f.clock_mhz);
    return fmt::format("{}, sm_{}{}, {} SMs{}, {:.1f} GiB", f.name, f.major, f.minor,
                       f.multiprocessors, clock, static_cast<double>(f.memory) / (1 << 30));
}

std::string cuda_version_text(int version) {
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string threads_text(int threads) {
    return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

}  // namespace mx::app
