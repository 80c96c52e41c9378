// SPDX-License-Identifier: Apache-2.0
// cvt.rs: sm_100a and sm_103a. Sources are written from the highest part of the result down.
#include "apps/mx_capture/cuda/kernels.hpp"

namespace mx::capture {
namespace {

constexpr int threads = 256;

// Op::result(in): in[0] is the lowest part of the result, in[4] the random word.
template <typename Op>
__global__ void convert(const std::uint32_t* inputs, std::uint32_t* results, std::size_t count) {
    const std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
    if (i < count) results[i] = Op::result(inputs + 5 * i);
}

template <typename Op>
void launch(const std::uint32_t* inputs, std::uint32_t* results, std::size_t count) {
    const std::size_t blocks = (count + threads - 1) / threads;
    convert<Op><<<static_cast<unsigned>(blocks), threads>>>(inputs, results, count);
}

#define MX_STOCHASTIC_2(NAME, PTX)                                                                \
    struct NAME {                                                                                 \
        static constexpr const char* ptx = PTX;                                                   \
        __device__ static std::uint32_t result(const std::uint32_t* in) {                         \
            std::uint32_t word;                                                                   \
            asm volatile(PTX " %0, %1, %2, %3;"                                                   \
                         : "=r"(word)                                                             \
                         : "f"(__uint_as_float(in[1])), "f"(__uint_as_float(in[0])), "r"(in[4])); \
            return word;                                                                          \
        }                                                                                         \
    };
#define MX_STOCHASTIC_4(NAME, PTX, TYPE, REGISTER)                                                \
    struct NAME {                                                                                 \
        static constexpr const char* ptx = PTX;                                                   \
        __device__ static std::uint32_t result(const std::uint32_t* in) {                         \
            TYPE word;                                                                            \
            asm volatile(PTX " %0, {%1, %2, %3, %4}, %5;"                                         \
                         : REGISTER(word)                                                         \
                         : "f"(__uint_as_float(in[3])), "f"(__uint_as_float(in[2])),              \
                           "f"(__uint_as_float(in[1])), "f"(__uint_as_float(in[0])), "r"(in[4])); \
            return word;                                                                          \
        }                                                                                         \
    };

MX_STOCHASTIC_2(f16, "cvt.rs.f16x2.f32")
MX_STOCHASTIC_2(f16_relu, "cvt.rs.relu.f16x2.f32")
MX_STOCHASTIC_2(f16_sat, "cvt.rs.satfinite.f16x2.f32")
MX_STOCHASTIC_2(bf16, "cvt.rs.bf16x2.f32")
MX_STOCHASTIC_2(bf16_relu, "cvt.rs.relu.bf16x2.f32")
MX_STOCHASTIC_2(bf16_sat, "cvt.rs.satfinite.bf16x2.f32")
#define MX_STOCHASTIC_8(NAME)                                                      \
    MX_STOCHASTIC_4(NAME, "cvt.rs.satfinite." #NAME "x4.f32", std::uint32_t, "=r") \
    MX_STOCHASTIC_4(NAME##_relu, "cvt.rs.relu.satfinite." #NAME "x4.f32", std::uint32_t, "=r")
MX_STOCHASTIC_8(e4m3)
MX_STOCHASTIC_8(e5m2)
MX_STOCHASTIC_8(e3m2)
MX_STOCHASTIC_8(e2m3)
MX_STOCHASTIC_4(e2m1, "cvt.rs.satfinite.e2m1x4.f32", std::uint16_t, "=h")
MX_STOCHASTIC_4(e2m1_relu, "cvt.rs.relu.satfinite.e2m1x4.f32", std::uint16_t, "=h")

template <typename Op>
constexpr stochastic_kernel row() {
    return {Op::ptx, launch<Op>};
}
constexpr stochastic_kernel rows[] = {
    row<f16>(),       row<f16_relu>(),  row<f16_sat>(), row<bf16>(),
    row<bf16_relu>(), row<bf16_sat>(),  row<e4m3>(),    row<e4m3_relu>(),
    row<e5m2>(),      row<e5m2_relu>(), row<e3m2>(),    row<e3m2_relu>(),
    row<e2m3>(),      row<e2m3_relu>(), row<e2m1>(),    row<e2m1_relu>()};

}  // namespace

std::span<const stochastic_kernel> stochastic_kernels() { return rows; }

}  // namespace mx::capture
