// SPDX-License-Identifier: Apache-2.0
// The system's HDF5 loses some memory of its own when a file is damaged; that is not ours to mend.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizer chose the name
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();

// NOLINTNEXTLINE(bugprone-reserved-identifier)
const char* __lsan_default_suppressions() { return "leak:libhdf5\n"; }
