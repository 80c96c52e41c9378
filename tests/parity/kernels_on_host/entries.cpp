// SPDX-License-Identifier: Apache-2.0
// Compiled like the kernels: see card.hpp.
#include "tests/parity/kernels_on_host/entries.hpp"

#include "libmx/codec/cuda/array_work.hpp"
#include "libmx/codec/cuda/element_body.hpp"
#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/cuda/meter_kernels.hpp"
#include "libmx/codec/cuda/row_kernels.hpp"
#include "libmx/gemm/cuda/kernels.hpp"
#include "libmx/lab/cuda/kernels.hpp"

namespace card {
namespace {

template <typename T>
T copy_of(const void* bytes) {
    static_assert(std::is_trivially_copyable_v<T>);
    T own;
    std::memcpy(static_cast<void*>(&own), bytes, sizeof own);
    return own;
}

}  // namespace

int enqueue_segments(const void* launch, void* stream) {
    return mx::codec::cuda::enqueue(copy_of<mx::codec::cuda::launch>(launch), stream);
}
int enqueue_elements(const void* launch, void* stream) {
    using mx::codec::cuda::element_launch;
    return mx::codec::cuda::enqueue(copy_of<element_launch>(launch), stream);
}
int enqueue_products(const void* launch, void* stream) {
    return mx::gemm::cuda::enqueue(copy_of<mx::gemm::cuda::tile_launch>(launch), stream);
}
int enqueue_chains(const void* launch, void* stream) {
    return mx::lab::cuda::enqueue(copy_of<mx::lab::cuda::product_launch>(launch), stream);
}
int enqueue_job(const void* job, std::uint64_t count, void* stream) {
    return mx::lab::cuda::enqueue(copy_of<mx::lab::job>(job), count, stream);
}
int enqueue_work(const void* work, void* stream) {
    return mx::codec::cuda::enqueue(copy_of<mx::codec::cuda::array_work>(work), stream);
}
int enqueue_read(const std::byte* from, std::uint64_t bytes, std::uint32_t* sum, void* stream) {
    return mx::codec::cuda::enqueue_read(from, bytes, sum, stream);
}
int enqueue_copy(std::byte* to, const std::byte* from, std::uint64_t bytes, void* stream) {
    return mx::codec::cuda::enqueue_copy(to, from, bytes, stream);
}

int compare_conversions(const char* format, const void* expected, const void* words,
                        unsigned long long* different, void* stream) {
    using namespace mx::codec::cuda;
    for (const auto& paths : {fp8_paths(), narrow_paths()}) {
        for (const instruction_path& p : paths) {
            if (p.format != format) continue;
            return p.compare(copy_of<expected_conversion>(expected), copy_of<word_range>(words),
                             different, stream);
        }
    }
    return -1;
}

}  // namespace card
