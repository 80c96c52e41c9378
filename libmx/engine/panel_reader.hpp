// SPDX-License-Identifier: Apache-2.0
// Panels from files: opens what is due, closes what is done, and fetches ahead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "libmx/engine/model.hpp"
#include "libmx/engine/sweep.hpp"
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

/// A panel in the memory of one thread, kept from panel to panel.
struct panel_room {
    std::vector<float> x;          ///< widened values
    std::vector<std::byte> bytes;  ///< what is stored
};

/// Reads the panels of some passes, each once. Threads may call at once.
class panel_reader {
  public:
    panel_reader(const std::vector<tensor_ref>& tensors, const std::vector<pass>& passes);

    /// Fills `room` with the panel `where` of `p`, pass number `pass_index`, as `form` says and
    /// returns its values. Adds to `inexact` what widening rounded.
    codec::stored_values read(const pass& p, std::size_t pass_index, const panel& where,
                              panel_form form, panel_room& room, std::uint64_t& inexact);

  private:
    std::shared_ptr<io::byte_source> source_of(std::size_t tensor);
    std::shared_ptr<io::byte_source> open_source(std::size_t tensor);  // guard_ is held
    void done(std::size_t tensor);
    void expect_next(std::size_t pass_index);

    const std::vector<tensor_ref>& tensors_;
    const std::vector<pass>& passes_;
    std::mutex guard_;
    std::map<std::size_t, std::shared_ptr<io::byte_source>> open_;
    std::map<std::size_t, std::uint64_t> left_;  // panels by tensor
    std::size_t expected_ = 0;                   // passes whose beginning was asked for
    read_ahead ahead_;
};

}  // namespace mx::engine
