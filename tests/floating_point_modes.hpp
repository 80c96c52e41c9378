// SPDX-License-Identifier: Apache-2.0
// THE LIST of modes in which a caller of the library may compute, for tests that set them. Between
// set() and reset() a test must not compute itself: its result may be another, or a signal.
#pragma once

#include <array>
#include <cfenv>
#include <cstdint>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace mx::tests {

#ifdef __x86_64__
/// Bits of MXCSR to set and to clear.
struct floating_point_mode {
    const char* name;
    unsigned set_bits, clear_bits;
    void set() const { _mm_setcsr((_mm_getcsr() & ~clear_bits) | set_bits); }
};
inline constexpr std::array floating_point_modes{
    floating_point_mode{"results that are subnormal are zero", 0x8000, 0},
    floating_point_mode{"operands that are subnormal are zero", 0x0040, 0},
    floating_point_mode{"up", 0x4000, 0},
    floating_point_mode{"down", 0x2000, 0},
    floating_point_mode{"towards zero", 0x6000, 0},
    floating_point_mode{"exceptions are signals", 0, 0x1f80},
};
/// The mode and the exception flags.
inline std::uint64_t floating_point_state() { return _mm_getcsr(); }
#elif defined(__aarch64__)
/// Bits of FPCR to set.
struct floating_point_mode {
    const char* name;
    std::uint64_t bits;
    void set() const { __asm__ volatile("msr fpcr, %0" : : "r"(bits)); }
};
inline constexpr std::array floating_point_modes{
    floating_point_mode{"subnormals are zero", 1u << 24},
    floating_point_mode{"up", 1u << 22},
    floating_point_mode{"down", 2u << 22},
    floating_point_mode{"towards zero", 3u << 22},
};
inline std::uint64_t floating_point_state() {
    std::uint64_t mode = 0, flags = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("mrs %0, fpsr" : "=r"(flags));
    return mode << 32 | flags;
}
#endif

inline void reset_floating_point() { std::fesetenv(FE_DFL_ENV); }

}  // namespace mx::tests
