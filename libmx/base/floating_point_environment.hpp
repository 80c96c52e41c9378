// SPDX-License-Identifier: Apache-2.0
// Arithmetic as figures are defined, in whatever mode the calling thread is.
#pragma once

#include <cfenv>
#include <cstdint>

namespace mx::base {

/// While it exists, the calling thread rounds to nearest even, keeps subnormals, and does not trap
/// exceptions; then everything is as before, exception flags too. A host program may have set
/// another mode (fesetround, -ffast-math, torch.set_flush_denormal), and a thread keeps the mode of
/// its creator: results depend on neither if main(), each function of the interfaces and each
/// thread begin with one of these.
class floating_point_environment {
  public:
    floating_point_environment() {
        std::fegetenv(&before_);
        std::fesetenv(FE_DFL_ENV);
#ifdef __aarch64__
        // The C library keeps bits of FPCR that it does not name.
        __asm__ volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}));
#endif
    }
    ~floating_point_environment() { std::fesetenv(&before_); }
    floating_point_environment(const floating_point_environment&) = delete;
    floating_point_environment& operator=(const floating_point_environment&) = delete;

  private:
    std::fenv_t before_;
};

}  // namespace mx::base
