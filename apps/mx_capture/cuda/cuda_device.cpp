// SPDX-License-Identifier: Apache-2.0
// The first CUDA GPU.
#include <fmt/format.h>

#include "apps/mx_capture/cuda/device_memory.hpp"
#include "apps/mx_capture/cuda/kernels.hpp"
#include "apps/mx_capture/cuda/library.hpp"
#include "apps/mx_capture/device.hpp"
#include "libmx/base/cuda/device.hpp"

namespace mx::capture {
namespace {

using namespace conformance::vectors;

// The row of several lists that has `ptx`.
template <typename Row>
const Row& kernel_of(std::string_view ptx, std::initializer_list<std::span<const Row>> lists) {
    for (const std::span<const Row> rows : lists) {
        for (const Row& row : rows) {
            if (row.ptx == ptx) return row;
        }
    }
    throw base::error(base::error_kind::unavailable, fmt::format("no kernel issues {}", ptx));
}

const mma_kernel& kernel_of(const instruction& i) {
    return kernel_of<mma_kernel>(
        i.ptx, {mma_sync_kernels(), mma_sync_fp8_kernels(), mma_sync_scaled_kernels(),
                wgmma_kernels(), tcgen05_kernels()});
}

const narrow_kernel& kernel_of(const narrowing& row) {
    return kernel_of<narrow_kernel>(row.instruction, {fp8_narrow_kernels(), narrow_kernels()});
}

// Appends bytes as words of four.
void append_words(std::vector<std::uint32_t>& words, const std::vector<std::uint8_t>& bytes) {
    for (std::size_t i = 0; i < bytes.size(); i += 4) {
        words.push_back(static_cast<std::uint32_t>(bytes[i]) |
                        static_cast<std::uint32_t>(bytes[i + 1]) << 8 |
                        static_cast<std::uint32_t>(bytes[i + 2]) << 16 |
                        static_cast<std::uint32_t>(bytes[i + 3]) << 24);
    }
}

void append(std::vector<std::uint32_t>& words, const std::vector<std::uint32_t>& more) {
    words.insert(words.end(), more.begin(), more.end());
}

std::string version_text(int v) { return fmt::format("{}.{}", v / 1000, v % 1000 / 10); }

class cuda_device final : public device {
  public:
    std::vector<std::uint32_t> multiply(const instruction& i, std::size_t steps, bool accumulate,
                                        std::span<const mma_tile> tiles) override {
        const mma_kernel& kernel = kernel_of(i);
        std::vector<std::uint32_t> a, b, sfa, sfb, c;
        for (const mma_tile& t : tiles) {
            append_words(a, packed_slices(i, *i.what.a, t.a, mma_tile_rows, steps));
            append_words(b, packed_slices(i, *i.what.b, t.b, mma_tile_cols, steps));
            append(sfa, packed_scales(i.what, t.sfa, mma_tile_rows, steps));
            append(sfb, packed_scales(i.what, t.sfb, mma_tile_cols, steps));
            append(c, t.c);
        }
        const device_array<std::uint32_t> on_a(a), on_b(b), on_sfa(sfa), on_sfb(sfb), on_c(c);
        const device_array<std::uint32_t> on_d(tiles.size() * mma_tile_outputs);
        const device_array<int> failed(1);
        mma_batch batch;
        batch.a = on_a.data();
        batch.b = on_b.data();
        batch.sfa = on_sfa.data();
        batch.sfb = on_sfb.data();
        batch.c = on_c.data();
        batch.d = on_d.data();
        batch.failed = failed.data();
        batch.tiles = static_cast<int>(tiles.size());
        batch.steps = static_cast<int>(steps);
        batch.descriptor = i.descriptor;
        batch.accumulate = accumulate;
        batch.f16 = i.what.f16;
        batch.where = i.where;
        kernel.launch(batch);
        finish(i.ptx);
        if (failed.values()[0] != 0) {
            throw base::error(base::error_kind::unavailable,
                              fmt::format("{} did not arrive", i.ptx));
        }
        return on_d.values();
    }

    std::vector<std::uint8_t> narrow(const narrowing& row,
                                     std::span<const std::uint32_t> words) override {
        // Conversions take pairs: an odd number is padded.
        std::vector<std::uint32_t> even(words.begin(), words.end());
        even.resize(words.size() + words.size() % 2);
        const device_array<std::uint32_t> on_words(even);
        const device_array<std::uint8_t> on_codes(even.size());
        kernel_of(row).convert(on_words.data(), on_codes.data(), even.size());
        finish(row.instruction);
        std::vector<std::uint8_t> codes = on_codes.values();
        codes.resize(words.size());
        return codes;
    }

    std::vector<std::uint64_t> hash_cells(const narrowing& row, std::uint32_t stride) override {
        const device_array<std::uint64_t> hash(float_cells);
        kernel_of(row).hash(hash.data(), stride);
        finish(row.instruction);
        return hash.values();
    }

    std::vector<std::uint16_t> widen(const widening& row, std::size_t count) override {
        const device_array<std::uint16_t> values(count);
        kernel_of<widen_kernel>(row.instruction, {fp8_widen_kernels(), widen_kernels()})
            .convert(values.data(), count);
        finish(row.instruction);
        return values.values();
    }

    std::vector<std::uint32_t> narrow_stochastically(
        const stochastic_narrowing& row, std::span<const stochastic_input> inputs) override {
        std::vector<std::uint32_t> words;
        for (const stochastic_input& in : inputs) {
            words.insert(words.end(), in.x.begin(), in.x.end());
            words.push_back(in.random);
        }
        const device_array<std::uint32_t> on_words(words);
        const device_array<std::uint32_t> results(inputs.size());
        kernel_of<stochastic_kernel>(row.instruction, {stochastic_kernels()})
            .convert(on_words.data(), results.data(), inputs.size());
        finish(row.instruction);
        return results.values();
    }

    library_product multiply_by_library(const library_problem& problem) override {
        return multiply_by_cublaslt(problem);
    }
};

}  // namespace

device_facts cuda_facts() {
    int driver = 0;
    int runtime = 0;
    check(cudaDriverGetVersion(&driver), "version of the driver");
    check(cudaRuntimeGetVersion(&runtime), "version of the runtime");
    std::string why = base::cuda::driver_obstacle(driver, runtime);
    int count = 0;
    const cudaError_t found = why.empty() ? cudaGetDeviceCount(&count) : cudaSuccess;
    if (found != cudaSuccess) why = cudaGetErrorString(found);
    if (count == 0) {
        throw base::error(base::error_kind::unavailable,
                          fmt::format("no CUDA card can be used on this machine ({}); without one "
                                      "only --emulate works",
                                      why.empty() ? "none is listed" : why));
    }
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, 0), "properties of the card");
    return {properties.name,
            properties.major,
            properties.minor,
            version_text(driver),
            version_text(runtime),
            cublaslt_version(),
            true};
}

std::unique_ptr<device> make_cuda_device() {
    check(cudaSetDevice(0), "the first card");
    return std::make_unique<cuda_device>();
}

}  // namespace mx::capture
