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
#include "libmx/engine/read_ahead.hpp"
#include "libmx/engine/sweep.hpp"
#include "libmx/io/reader.hpp"

namespace mx::engine {

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
    void done(std::size_t tensor);

    const std::vector<tensor_ref>& tensors_;
    std::mutex guard_;
    std::map<std::size_t, std::shared_ptr<io::byte_source>> open_;
    std::map<std::size_t, std::uint64_t> left_;  // panels by tensor
    read_ahead ahead_;
};

}  // namespace mx::engine
