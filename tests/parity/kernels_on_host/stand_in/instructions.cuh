// SPDX-License-Identifier: Apache-2.0
// Replaces libmx/format/cuda/instructions.cuh: the emulator instead of PTX's cvt.
#pragma once

#define MX_NARROW(NAME, PTX)                                                      \
    struct NAME {                                                                 \
        static constexpr const char* ptx = PTX;                                   \
        static std::uint32_t codes(std::uint32_t high, std::uint32_t low) {       \
            return ::card::narrowed(ptx, low) | ::card::narrowed(ptx, high) << 8; \
        }                                                                         \
    };
#define MX_WIDEN(NAME, PTX)                                                      \
    struct NAME {                                                                \
        static constexpr const char* ptx = PTX;                                  \
        static std::uint32_t values(std::uint32_t low, std::uint32_t high) {     \
            return ::card::widened(ptx, low) | ::card::widened(ptx, high) << 16; \
        }                                                                        \
    };
#define MX_NARROW_FP4 MX_NARROW
#define MX_WIDEN_FP4 MX_WIDEN
