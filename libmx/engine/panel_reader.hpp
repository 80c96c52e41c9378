// SPDX-License-Identifier: Apache-2.0
// Reads panels from files: opens files when needed, closes them when done, and reads ahead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "libmx/base/aligned.hpp"
#include "libmx/codec/quantizer.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/sweep.hpp"
#include "libmx/io/reader.hpp"

namespace mx::engine {

/// Monitors the reads of a sweep. While they are slow, it announces the following reads to the
/// source, so that the disk works while threads compute; the bytes wait in the system's cache. Does
/// nothing for files that are already cached, because announcing would cost as much as it saves.
class read_ahead {
  public:
    /// Bytes per announcement.
    static constexpr std::uint64_t window = std::uint64_t{16} << 20;

    /// Reports that a read of `bytes` in pass `pass` took `seconds`; the pass continues at byte
    /// `next` of the tensor. Thread-safe.
    void after_read(const io::byte_source& source, std::size_t pass, std::uint64_t bytes,
                    std::uint64_t next, double seconds);

  private:
    std::mutex guard_;
    std::size_t pass_ = 0;
    std::uint64_t asked_ = 0;  ///< end of what was asked for, in the current pass
    int windows_left_ = 0;     ///< to ask for before reads must be seen to be slow again
};

/// A panel in the memory of one thread, reused for all panels.
class panel_buffer {
  public:
    /// Memory and types are those of `by` (non-owning), if it is not null: see
    /// quantizer::reserve_values.
    void serve(codec::quantizer* by, std::size_t which) {
        by_ = by;
        which_ = which;
    }
    /// Whether values of this type may stay as stored.
    bool reads(tensor::dtype type) const {
        return by_ != nullptr ? by_->reads(type) : codec::is_stored(type);
    }
    /// Memory for a panel; the last one is lost.
    std::byte* reserve(std::size_t bytes) {
        std::byte* const given = by_ != nullptr ? by_->reserve_values(which_, bytes) : nullptr;
        return given != nullptr ? given : own_.reserve(bytes);
    }

    std::vector<std::byte> scratch;  ///< what is stored, in pieces to be widened

  private:
    codec::quantizer* by_ = nullptr;
    std::size_t which_ = 0;
    base::aligned_buffer<std::byte> own_;
};

/// Reads each panel of some passes once. Thread-safe.
class panel_reader {
  public:
    panel_reader(const std::vector<tensor_ref>& tensors, const std::vector<pass>& passes);

    /// Reads the panel `where` of `p`, pass number `pass_index`, into `buffer` in the form `form`,
    /// and returns its values. Adds the number of values rounded by widening to `inexact`.
    codec::stored_values read(const pass& p, std::size_t pass_index, const panel& where,
                              panel_form form, panel_buffer& buffer, std::uint64_t& inexact);

  private:
    std::shared_ptr<io::byte_source> source_of(std::size_t tensor);
    std::shared_ptr<io::byte_source> open_source(std::size_t tensor);  // requires guard_
    void done(std::size_t tensor);
    void expect_next(std::size_t pass_index);

    const std::vector<tensor_ref>& tensors_;
    const std::vector<pass>& passes_;
    std::mutex guard_;
    std::map<std::size_t, std::shared_ptr<io::byte_source>> open_;
    std::map<std::size_t, std::uint64_t> left_;  // remaining panels by tensor
    std::size_t expected_ = 0;                   // passes whose beginning was announced
    read_ahead ahead_;
};

}  // namespace mx::engine
