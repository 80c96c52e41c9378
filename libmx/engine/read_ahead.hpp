// SPDX-License-Identifier: Apache-2.0
// Fetching what comes next from a slow file while this is worked on.
#pragma once

#include <cstdint>
#include <mutex>

#include "libmx/io/reader.hpp"

namespace mx::engine {

/// Watches the reads of a sweep. While they are slow it tells the source what comes after them, so
/// that a disk is busy while threads compute; the bytes wait in the system's cache. Files that are
/// in the cache already are left alone: asking would cost as much as it could gain.
class read_ahead {
  public:
    /// Bytes asked for at a time.
    static constexpr std::uint64_t window = std::uint64_t{16} << 20;

    /// A read of `bytes` of pass `pass` took `seconds`; the pass goes on at byte `next` of the
    /// tensor. Threads may call at once.
    void after_read(const io::byte_source& source, std::size_t pass, std::uint64_t bytes,
                    std::uint64_t next, double seconds);

  private:
    std::mutex guard_;
    std::size_t pass_ = 0;
    std::uint64_t asked_ = 0;  ///< end of what was asked for, in the current pass
    int windows_left_ = 0;     ///< to ask for before reads must be seen to be slow again
};

}  // namespace mx::engine
