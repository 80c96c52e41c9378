// SPDX-License-Identifier: Apache-2.0
// A batch by a driver that takes segments one by one: what a device without room is replaced with.
#pragma once

#include <memory>
#include <vector>

#include "libmx/quantize/segment_batch.hpp"

namespace mx::quantize {

class driver_batch final : public segment_batch {
  public:
    explicit driver_batch(const driver& d) : driver_(&d) {}
    void run(const value_rectangle& values, std::span<const batch_segment> segments,
             std::span<const batch_recipe> recipes) override;
    batch_result result(std::size_t segment, std::size_t recipe) const override;

  private:
    // What a recipe makes of all blocks, as far as it is wanted.
    struct kept_details {
        detail wanted = detail::none;
        std::vector<std::uint8_t> codes, scale_code;
        std::vector<std::uint16_t> offset;
        std::vector<std::uint32_t> amax, x_max, x_min;
        std::vector<block::block_stats> stats;

        void fit(std::size_t blocks, std::size_t stride);
        void keep(std::size_t first, const details_view& from);
        details_view view(std::size_t first, std::size_t blocks, std::size_t stride) const;
    };

    const driver* driver_;
    block_run run_;
    block_details details_;
    std::size_t recipes_ = 0, stride_ = 0;
    std::vector<std::size_t> first_blocks_;    // by segment, and the number of all blocks
    std::vector<block::segment_stats> stats_;  // of a segment under all recipes, then of the next
    std::vector<kept_details> kept_;           // by recipe
};

}  // namespace mx::quantize
