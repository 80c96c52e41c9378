// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies to shared memory, which arrive as late as allowed: when they are waited for.
#pragma once

inline void __pipeline_memcpy_async(void* to, const void* from, std::size_t bytes) {
    card::queue_copy(to, from, bytes);
}
inline void __pipeline_commit() { card::commit_copies(); }
inline void __pipeline_wait_prior(std::size_t groups) { card::wait_for_copies(groups); }
