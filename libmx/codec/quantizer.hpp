// SPDX-License-Identifier: Apache-2.0
// The interface of quantization on any backend: segments and recipes in; statistics and, if
// requested, codes out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "libmx/base/notices.hpp"
#include "libmx/base/status.hpp"
#include "libmx/block/segment_stats.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/segment.hpp"

namespace mx::codec {

/// Rows of values that are passed together, of a type that the quantizer reads.
struct value_rectangle {
    stored_values values;
    std::uint64_t rows = 0, cols = 0;
};

/// A segment of a rectangle, its first element at (row, col).
struct placed_segment {
    segment_place place;
    std::uint64_t row = 0, col = 0;
};

/// The results requested for every block besides the sums of the segment.
enum class detail : std::uint8_t {
    none,
    scales,  ///< the facts of a scale
    codes,   ///< these and codes
    stats,   ///< these and all of block_stats
};

struct recipe_request {
    const block_params* params = nullptr;  ///< not owned
    detail wanted = detail::none;
    bool parts = false;   ///< also the parts of the squared error
    bool values = false;  ///< also dequantized values, unless codes tell them (codes_tell_values)
    bool inputs = false;  ///< also the values of the blocks, as they were quantized
    bool sums = true;     ///< false: backends may leave segment_result::stats empty
    bool all_values = false;  ///< `values` even if codes tell them; OCP recipes have none
};

/// Calls visit(array, elements per block) for the arrays of `r` that a request includes.
template <typename Visit>
void for_each_array(block_results& r, const recipe_request& asked, Visit&& visit) {
    if (asked.wanted >= detail::codes) visit(r.codes, r.stride);
    if (asked.wanted != detail::none) {
        visit(r.scale_code, std::size_t{1});
        visit(r.offset, std::size_t{1});
        visit(r.amax, std::size_t{1});
        visit(r.x_max, std::size_t{1});
        visit(r.x_min, std::size_t{1});
    }
    if (asked.wanted == detail::stats) visit(r.stats, std::size_t{1});
    const bool all = asked.all_values && !asked.params->ocp;
    if (asked.values && (all || !codes_tell_values(*asked.params))) visit(r.values, r.stride);
}

/// block_stats::scale of a block; requires codes.
float scale_of_block(const block_params& p, const block_results& d, std::size_t block);

/// Writes the dequantized values of a block; requires codes and `values`.
void values_of_block(const block_params& p, const block_results& d, std::size_t block,
                     std::span<float> values);

/// The same before the rounding to float32: exact products of scales and elements. Values that the
/// dialect rounds itself are as above.
void values_of_block(const block_params& p, const block_results& d, std::size_t block,
                     std::span<double> values);

/// The float32 values of consecutive blocks without padding, `stride` values each; `values` holds
/// whole blocks.
void values_of_blocks(const block_params& p, const block_results& d, std::size_t first,
                      std::span<float> values);

/// The results for a segment under one recipe. Counts and maxima are those of the segment; the
/// exact sums may be delivered later, together with those of a following segment of the same run.
struct segment_result {
    const block::segment_stats* stats;
    block_results of_blocks;
    tensor_scale outer{};  ///< where areas have one each: that of the segment, which is one
};

/// Called for each segment with its index in the list and one result per recipe, in their order.
/// Pointers in the results are valid until it returns.
using segment_visitor =
    std::function<void(std::size_t segment, std::span<const segment_result> by_recipe)>;

/// Used by one thread. Every backend gives the same bytes.
class quantizer {
  public:
    quantizer() = default;
    quantizer(const quantizer&) = delete;
    quantizer& operator=(const quantizer&) = delete;
    virtual ~quantizer() = default;

    /// `notices` is called if another backend takes over because a device lacks memory; setting
    /// `cancel` stops a run early. Both are non-owning; without notices, lack of memory is an
    /// error.
    void steer(base::notices* notices, const std::atomic<bool>* cancel) {
        notices_ = notices;
        cancel_ = cancel;
    }

    /// Whether values may be of this type, if rows begin at whole bytes; others must be widened to
    /// f32.
    virtual bool reads(tensor::dtype type) const { return is_stored(type); }

    /// Memory `which`, 0 or 1, for `bytes` of values, from which a device receives them without a
    /// further copy on the host; null if there is none, and any memory is as good. The next call
    /// with the same number frees it.
    virtual std::byte* reserve_values(std::size_t which, std::size_t bytes);

    /// `work` is called at most once, during a run, when this thread would otherwise wait for a
    /// device. It must not throw, nor change values of the run. An empty function: nothing.
    void meanwhile(std::function<void()> work) { meanwhile_ = std::move(work); }

    /// Quantizes all segments, which must have the same block extents, under all recipes, and calls
    /// `visit` for each of them in order. Throws base::error: unavailable if a device fails,
    /// cancelled.
    virtual void run(const value_rectangle& values, std::span<const placed_segment> segments,
                     std::span<const recipe_request> recipes, const segment_visitor& visit) = 0;

  protected:
    base::notices* notices() const { return notices_; }
    const std::atomic<bool>* cancel() const { return cancel_; }
    void work_meanwhile() {
        if (meanwhile_) std::exchange(meanwhile_, {})();
    }
    void stop_if_cancelled() const {
        if (cancel_ == nullptr || !cancel_->load(std::memory_order_relaxed)) return;
        throw base::error(base::error_kind::cancelled, "stopped before the end");
    }

  private:
    base::notices* notices_ = nullptr;
    const std::atomic<bool>* cancel_ = nullptr;
    std::function<void()> meanwhile_;
};

}  // namespace mx::codec
