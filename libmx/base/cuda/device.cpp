// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/cuda/device.hpp"

#include <fmt/format.h>

namespace mx::base::cuda {

out_of_memory::out_of_memory(const std::string& shortage)
    : error(error_kind::unavailable,
            fmt::format("backend cuda: {}; choose fewer --threads, or leave out --backend cuda",
                        shortage)),
      shortage_(shortage) {}

std::byte* held_memory::reserve(std::size_t bytes) {
    if (bytes <= size_) return data_;
    release();
    data_ = from_->take(kind_, bytes);
    size_ = bytes;
    return data_;
}

void held_memory::release() noexcept {
    if (data_ == nullptr) return;
    from_->give_back(kind_, data_, size_);
    data_ = nullptr;
    size_ = 0;
}

stream& lane::work() {
    if (!work_) work_ = on_->make_stream();
    return *work_;
}

void lane::release() noexcept {
    stop();
    card.release();
    pinned.release();
}

std::string shortage_of(memory_kind kind, std::uint64_t needed, const memory_info& now) {
    constexpr std::uint64_t mib = std::uint64_t{1} << 20;
    const std::uint64_t least = needed / mib + (needed % mib != 0 ? 1 : 0);
    if (kind == memory_kind::pinned) {
        return fmt::format("the host has no pinned memory left ({} MiB are needed)", least);
    }
    return fmt::format("the GPU is out of memory ({} MiB free of {} MiB, {} MiB are needed)",
                       now.free / mib, now.all / mib, least);
}

// From CUDA 11 on, a driver serves every runtime of its major version and of earlier ones.
std::string driver_obstacle(int driver, int runtime) {
    if (driver == 0) return "no NVIDIA driver";
    if (driver / 1000 >= runtime / 1000) return {};
    const auto number = [](int version, char point) {
        return fmt::format("{}{}{}", version / 1000, point, version % 1000 / 10);
    };
    return fmt::format(
        "the NVIDIA driver serves CUDA up to {}, and this program was built with CUDA {}: install "
        "a driver for CUDA {} or later, on data center GPUs the package cuda-compat-{} instead, or "
        "build with an older CUDA, from 12.8 on",
        number(driver, '.'), number(runtime, '.'), runtime / 1000, number(runtime, '-'));
}

std::string went_elsewhere(const out_of_memory& short_of, std::string_view name) {
    return fmt::format("backend cuda: {}; continuing with backend {}, which gives the same bytes",
                       short_of.shortage(), name);
}

}  // namespace mx::base::cuda
