// SPDX-License-Identifier: Apache-2.0
// Conversion instructions (PTX ISA 9.0, section "Data Movement and Conversion Instructions: cvt"),
// each as a type: `ptx` and a function. A translation unit instantiates those that its targets
// have.
#pragma once

#include <cstdint>

// codes(high, low): the code of `low` in bits 0 to 7, that of `high` in bits 8 to 15. float32 to
// pairs of bytes.
#define MX_NARROW(NAME, PTX)                                                           \
    struct NAME {                                                                      \
        static constexpr const char* ptx = PTX;                                        \
        __device__ static std::uint32_t codes(std::uint32_t high, std::uint32_t low) { \
            std::uint16_t both;                                                        \
            asm(PTX " %0, %1, %2;"                                                     \
                : "=h"(both)                                                           \
                : "f"(__uint_as_float(high)), "f"(__uint_as_float(low)));              \
            return both;                                                               \
        }                                                                              \
    };

// 16-bit words, packed.
#define MX_NARROW_PACKED(NAME, PTX)                                                    \
    struct NAME {                                                                      \
        static constexpr const char* ptx = PTX;                                        \
        __device__ static std::uint32_t codes(std::uint32_t high, std::uint32_t low) { \
            std::uint16_t both;                                                        \
            asm(PTX " %0, %1;" : "=h"(both) : "r"(high << 16 | (low & 0xffffu)));      \
            return both;                                                               \
        }                                                                              \
    };

// A pair of e2m1 is one byte. Inline assembly has no register of that size: it is declared inside.
#define MX_NARROW_FP4(NAME, PTX)                                                       \
    struct NAME {                                                                      \
        static constexpr const char* ptx = PTX;                                        \
        __device__ static std::uint32_t codes(std::uint32_t high, std::uint32_t low) { \
            std::uint16_t both;                                                        \
            asm("{ .reg .b8 pair; " PTX " pair, %1, %2; mov.b16 %0, {pair, 0}; }"      \
                : "=h"(both)                                                           \
                : "f"(__uint_as_float(high)), "f"(__uint_as_float(low)));              \
            return (both & 0xfu) | (both & 0xf0u) << 4;                                \
        }                                                                              \
    };

// values(low, high): of two codes in bits 0 to 7, as 16-bit words, that of `low` in the lower half.
#define MX_WIDEN(NAME, PTX)                                                                      \
    struct NAME {                                                                                \
        static constexpr const char* ptx = PTX;                                                  \
        __device__ static std::uint32_t values(std::uint32_t low, std::uint32_t high) {          \
            std::uint32_t both;                                                                  \
            asm(PTX " %0, %1;" : "=r"(both) : "h"(static_cast<std::uint16_t>(low | high << 8))); \
            return both;                                                                         \
        }                                                                                        \
    };

#define MX_WIDEN_FP4(NAME, PTX)                                                         \
    struct NAME {                                                                       \
        static constexpr const char* ptx = PTX;                                         \
        __device__ static std::uint32_t values(std::uint32_t low, std::uint32_t high) { \
            std::uint32_t both;                                                         \
            asm("{ .reg .b8 pair, rest; mov.b16 {pair, rest}, %1; " PTX " %0, pair; }"  \
                : "=r"(both)                                                            \
                : "h"(static_cast<std::uint16_t>(low | high << 4)));                    \
            return both;                                                                \
        }                                                                               \
    };

// result(in): in[0] is the lowest part of the result, in[4] the random word. Sources are written
// from the highest part of the result down.
#define MX_STOCHASTIC_2(NAME, PTX)                                                       \
    struct NAME {                                                                        \
        static constexpr const char* ptx = PTX;                                          \
        __device__ static std::uint32_t result(const std::uint32_t* in) {                \
            std::uint32_t word;                                                          \
            asm(PTX " %0, %1, %2, %3;"                                                   \
                : "=r"(word)                                                             \
                : "f"(__uint_as_float(in[1])), "f"(__uint_as_float(in[0])), "r"(in[4])); \
            return word;                                                                 \
        }                                                                                \
    };
#define MX_STOCHASTIC_4(NAME, PTX, TYPE, REGISTER)                                       \
    struct NAME {                                                                        \
        static constexpr const char* ptx = PTX;                                          \
        __device__ static std::uint32_t result(const std::uint32_t* in) {                \
            TYPE word;                                                                   \
            asm(PTX " %0, {%1, %2, %3, %4}, %5;"                                         \
                : REGISTER(word)                                                         \
                : "f"(__uint_as_float(in[3])), "f"(__uint_as_float(in[2])),              \
                  "f"(__uint_as_float(in[1])), "f"(__uint_as_float(in[0])), "r"(in[4])); \
            return word;                                                                 \
        }                                                                                \
    };
