// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstring>
#include <memory>

#include "libmx/base/cuda/device_memory.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/codec/cuda/row_kernels.hpp"
#include "libmx/format/decode.hpp"

namespace mx::codec::cuda {
namespace {

using base::cuda::check;
using base::cuda::held_memory;
using base::cuda::memory_kind;

expected_conversion expected_of(std::string_view name) {
    const format::element_format& f = *format::find_element_format(name);
    expected_conversion e{format::params_of(f, false), {}};
    for (std::uint32_t code = 0; code < 256; ++code) e.value[code] = format::decode(f, code);
    return e;
}

bool agrees(const instruction_path& path) {
    if (path.has_code() != cudaSuccess) return false;
    constexpr word_range all_bf16{0, 1u << 16, 1u << 16, true};
    constexpr word_range some_f32{0, 4099, (std::uint64_t{1} << 32) / 4099, true};
    try {
        return differences(path, all_bf16) == 0 && differences(path, some_f32) == 0;
    } catch (const base::error&) {
        return false;
    }
}

std::uint32_t look_into() {
    std::uint32_t bodies = 0;
    for (const auto& paths : {fp8_paths(), narrow_paths()}) {
        for (const instruction_path& p : paths) {
            if (agrees(p)) bodies |= 1u << row_body_of(p.format);
        }
    }
    return bodies;
}

}  // namespace

std::uint64_t differences(const instruction_path& path, const word_range& words) {
    base::cuda::device& on = base::cuda::first_device();
    held_memory here(on, memory_kind::pinned), there(on, memory_kind::device);
    unsigned long long count = 0;
    std::byte* const host = here.reserve(sizeof count);
    std::byte* const device = there.reserve(sizeof count);
    const std::unique_ptr<base::cuda::stream> stream = on.make_stream();
    std::memcpy(host, &count, sizeof count);
    stream->copy_there(device, host, sizeof count);
    check(path.compare(expected_of(path.format), words,
                       reinterpret_cast<unsigned long long*>(device), stream->handle()),
          "starting a comparison");
    stream->copy_back(host, device, sizeof count);
    stream->wait();
    std::memcpy(&count, host, sizeof count);
    return count;
}

std::uint32_t bodies_by_instruction() {
    static const std::uint32_t found = look_into();
    return found;
}

}  // namespace mx::codec::cuda
