// SPDX-License-Identifier: Apache-2.0
// In place of libcuda.so.1: a driver for CUDA 12.4, on a machine without a GPU.
#include <cstring>

namespace {

using result = int;  // CUresult: 0 is success
using entry = void*;

result unsupported() { return 801; }

}  // namespace

extern "C" {

result cuInit(unsigned) { return 0; }
result cuDriverGetVersion(int* version) {
    *version = 12040;
    return 0;
}
result cuGetProcAddress_v2(const char* name, entry* found, int, unsigned long, int* status) {
    *found = reinterpret_cast<entry>(unsupported);
    if (std::strcmp(name, "cuInit") == 0) *found = reinterpret_cast<entry>(cuInit);
    if (std::strcmp(name, "cuDriverGetVersion") == 0) {
        *found = reinterpret_cast<entry>(cuDriverGetVersion);
    }
    if (std::strcmp(name, "cuGetProcAddress") == 0) {
        *found = reinterpret_cast<entry>(cuGetProcAddress_v2);
    }
    if (status != nullptr) *status = 0;
    return 0;
}
result cuGetProcAddress(const char* name, entry* found, int version, unsigned long flags) {
    return cuGetProcAddress_v2(name, found, version, flags, nullptr);
}
}
