// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/read_ahead.hpp"

#include <algorithm>

namespace mx::engine {
namespace {

// Copies from the system's cache are several times faster, a single disk is slower.
constexpr double slow_bytes_per_second = 2e9;

// Reads that ran into what was asked for are fast, and say nothing about the rest of the file.
constexpr int windows_at_once = 16;

}  // namespace

void read_ahead::after_read(const io::byte_source& source, std::size_t pass, std::uint64_t bytes,
                            std::uint64_t next, double seconds) {
    const bool slow = static_cast<double>(bytes) < seconds * slow_bytes_per_second;
    std::uint64_t from = 0;
    {
        const std::lock_guard lock(guard_);
        if (slow) windows_left_ = windows_at_once;
        if (windows_left_ == 0) return;
        if (pass != pass_) {
            pass_ = pass;
            asked_ = 0;
        }
        from = std::max(asked_, next);
        if (from > next + window / 2) return;
        asked_ = from + window;
        --windows_left_;
    }
    source.expect(from, window);
}

}  // namespace mx::engine
