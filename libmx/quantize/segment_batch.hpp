// SPDX-License-Identifier: Apache-2.0
// Many segments and recipes at once, for drivers whose device wants more than a segment to work on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "libmx/base/notices.hpp"
#include "libmx/base/status.hpp"
#include "libmx/quantize/driver.hpp"

namespace mx::quantize {

/// Rows of values that are handed over together.
struct value_rectangle {
    stored_values values;
    std::uint64_t rows = 0, cols = 0;
};

/// A segment of it, its first element at (row, col).
struct batch_segment {
    segment_place place;
    std::uint64_t row = 0, col = 0;
};

struct batch_recipe {
    const block_params* params = nullptr;  ///< not owned
    detail wanted = detail::none;
    bool parts = false;
    bool values = false;  ///< see block_details
};

/// What driver::quantize would have delivered.
struct batch_result {
    const block::segment_stats* stats;
    details_view details;
};

/// Of one thread.
class segment_batch {
  public:
    segment_batch() = default;
    segment_batch(const segment_batch&) = delete;
    segment_batch& operator=(const segment_batch&) = delete;
    virtual ~segment_batch() = default;

    /// Who hears that another driver went on because the device has no room, and what stops a run
    /// early; neither is owned. With nobody to hear of it, a device without room is an error.
    void steer(base::notices* notices, const std::atomic<bool>* cancel) {
        notices_ = notices;
        cancel_ = cancel;
    }

    /// Quantizes all segments, which share their block extents, under all recipes. Throws
    /// base::error: unavailable when the device fails, cancelled.
    virtual void run(const value_rectangle& values, std::span<const batch_segment> segments,
                     std::span<const batch_recipe> recipes) = 0;
    /// What became of a segment under a recipe, by their places in the last run; valid until the
    /// next one.
    virtual batch_result result(std::size_t segment, std::size_t recipe) const = 0;

  protected:
    base::notices* notices() const { return notices_; }
    const std::atomic<bool>* cancel() const { return cancel_; }
    void stop_if_cancelled() const {
        if (cancel_ == nullptr || !cancel_->load(std::memory_order_relaxed)) return;
        throw base::error(base::error_kind::cancelled, "stopped before the end");
    }

  private:
    base::notices* notices_ = nullptr;
    const std::atomic<bool>* cancel_ = nullptr;
};

/// Runs the segments in as few parts as keep what is left of their blocks within `most` bytes (a
/// single segment is never divided), and calls on_segment(segment, its place in the batch's last
/// run) for each of them in order, while its results are there.
void run_in_parts(segment_batch& batch, const value_rectangle& values,
                  std::span<const batch_segment> segments, std::span<const batch_recipe> recipes,
                  const std::function<void(std::size_t segment, std::size_t in_run)>& on_segment,
                  std::uint64_t most = std::uint64_t{128} << 20);

/// driver::quantize for what driver::load put into `run`, by the driver's batch where there is one
/// (it may be null), so that what it has to tell is heard.
block::segment_stats quantize_one(const driver& d, segment_batch* batch, const block_params& p,
                                  block_run& run, block_details& details);

}  // namespace mx::quantize
