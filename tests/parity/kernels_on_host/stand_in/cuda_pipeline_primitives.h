// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies to shared memory.
#pragma once

inline void __pipeline_memcpy_async(void* to, const void* from, std::size_t bytes) {
    card::start_copy(to, from, bytes);
}
inline void __pipeline_commit() { card::end_group(); }
inline void __pipeline_wait_prior(std::size_t but) { card::wait_for_groups(but); }
