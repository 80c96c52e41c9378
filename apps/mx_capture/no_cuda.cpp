// SPDX-License-Identifier: Apache-2.0
// Replaces cuda/ in builds without CUDA.
#include "apps/mx_capture/device.hpp"
#include "libmx/base/status.hpp"

namespace mx::capture {
namespace {

[[noreturn]] void missing() {
    throw base::error(base::error_kind::unavailable,
                      "built without CUDA: install CUDA 12.8 or later and configure again; without "
                      "a card only --emulate works");
}

}  // namespace

device_facts cuda_facts() { missing(); }
std::unique_ptr<device> make_cuda_device() { missing(); }

}  // namespace mx::capture
