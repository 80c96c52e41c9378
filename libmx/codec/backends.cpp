// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/backends.hpp"

#include "libmx/codec/cuda/cuda_backend.hpp"
#include "libmx/codec/simd/kernels.hpp"
#include "libmx/codec/simd/words.hpp"

namespace mx::codec {
namespace {

using base::backend_row;

std::unique_ptr<quantizer> scalar_quantizer() { return make_cpu_quantizer(scalar::kernel); }

template <simd::target t>
std::unique_ptr<quantizer> vector_quantizer() {
    return make_cpu_quantizer(simd::kernel_of<t>);
}

template <simd::target t>
constexpr backend vector_backend(std::string_view name) {
    return {backend_row(name),
            vector_quantizer<t>,
            simd::make_caster<t>,
            nullptr,
            simd::takes,
            simd::takes_cast,
            [] { return simd::word_passes_for(t); }};
}

constexpr std::array backend_rows{
    backend{backend_row("scalar"), scalar_quantizer, make_host_caster},
    vector_backend<simd::target::neon>("neon"),
    vector_backend<simd::target::sse4>("sse4"),
    vector_backend<simd::target::avx2>("avx2"),
    vector_backend<simd::target::avx512>("avx512"),
    backend{backend_row("cuda"), cuda::make_quantizer, cuda::make_caster, cuda::make_meter},
};
static_assert(backend_rows.size() == base::backends.size());

}  // namespace

std::span<const backend> backends() { return backend_rows; }

const backend& best_backend() { return backend_rows[base::best_backend()]; }

const backend& backend_named(std::string_view name) {
    return backend_rows[base::backend_named(name)];
}

}  // namespace mx::codec
