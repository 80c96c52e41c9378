// SPDX-License-Identifier: Apache-2.0
// The system's HDF5 leaks memory if a file is damaged; this is outside our control.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer chose the name
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();

// NOLINTNEXTLINE(bugprone-reserved-identifier)
const char* __lsan_default_suppressions() { return "leak:libhdf5\n"; }
