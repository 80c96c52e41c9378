// SPDX-License-Identifier: Apache-2.0
// Quantizes a panel under recipes with the same grid; used by every study.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "libmx/codec/quantizer.hpp"
#include "libmx/codec/word_counts.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/element_quantizer.hpp"
#include "libmx/engine/panels.hpp"

namespace mx::engine {

/// A segment of a grid for backends. Blocks are limited to the size of the matrix, which changes no
/// result, because backends allocate whole blocks.
codec::segment_place place_of(const segment_in_panel& s, const block::grid& g,
                              std::uint64_t tensor_id);

/// A segment of a panel with its results under each recipe.
struct quantized_segment {
    const segment_in_panel& at;
    const codec::segment_place& place;
    const block::grid& grid;
    std::span<const codec::segment_result> by_recipe;
    std::size_t model = 0;  ///< of several whose values are quantized side by side

    /// Index of a block of the segment in the tensor's grid of blocks.
    std::uint64_t index_of(std::size_t block) const {
        const std::uint64_t across = place.grid_cols();
        return at.index + block / across * grid.cols() + block % across;
    }
};

/// Belongs to one thread and is reused for all panels.
class panel_quantizer {
  public:
    /// Uses the backend of `control`, which must outlive it.
    explicit panel_quantizer(const run_control& control)
        : quantizer_(control.make_quantizer()), elements_(make_element_quantizer()) {
        elements_->steer(nullptr, control.cancel);
    }

    /// That of recipes with blocks.
    codec::quantizer& by() const { return *quantizer_; }

    /// Calls `visit` for every segment of `g` in `where`, in a fixed order. `values` begins at the
    /// panel's first element; matrices are where.rows * values.stride elements apart. All recipes
    /// have blocks, or none has; then values are f32, bf16 or f16.
    void run(const block::grid& g, const panel& where, const codec::stored_values& values,
             std::uint64_t tensor_id, std::span<const codec::recipe_request> recipes,
             const std::function<void(const quantized_segment&)>& visit) {
        run(g, where, std::span(&values, 1), tensor_id, recipes, visit);
    }
    /// The same for values of several models; `recipes` are those of the first model, then as many
    /// for each further one. Every segment is visited for one model after the other.
    void run(const block::grid& g, const panel& where, std::span<const codec::stored_values> models,
             std::uint64_t tensor_id, std::span<const codec::recipe_request> recipes,
             const std::function<void(const quantized_segment&)>& visit);

    /// Counts the segments of `g` in `where` instead; setting `cancel` stops it. `to`: word_counts,
    /// or joint_counts.
    template <typename Counts>
    void count(const block::grid& g, const panel& where, const codec::stored_values& values,
               Counts& to, const std::atomic<bool>* cancel) {
        place_segments(g, where, 0);
        to.add({values, where.batches * where.rows, where.cols}, places_, cancel);
    }

  private:
    void place_segments(const block::grid& g, const panel& where, std::uint64_t tensor_id);

    std::unique_ptr<codec::quantizer> quantizer_, elements_;  // of recipes with blocks, without
    std::vector<segment_in_panel> segments_;
    std::vector<codec::placed_segment> places_;
};

}  // namespace mx::engine
