// SPDX-License-Identifier: Apache-2.0
// Tensors that are counted instead of quantized (codec/word_counts.hpp): their selection, counters
// and results.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "libmx/block/view.hpp"
#include "libmx/codec/joint_counts.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/counted_totals.hpp"

namespace mx::engine {

/// Whether counting a tensor is faster than quantizing it under these recipes, which have the same
/// grid and satisfy codec::counts_words.
bool is_counted(const run_control& control, std::uint64_t elements,
                std::span<const codec::recipe_request> recipes);

/// Jobs of a tensor with the same block shape.
struct counted_jobs {
    std::size_t tensor = 0;         ///< of the batch
    std::vector<std::size_t> jobs;  ///< indices among those of the batch
    tensor::dtype type{};
    std::vector<codec::recipe_request> recipes;  ///< by job
    bool lasting = false;                        ///< their params are those of the whole run
    std::vector<std::unique_ptr<codec::word_counts>> by_thread;  ///< null: none yet
    /// Of blocks of 32: the jobs of their halves, if there are any; of these, those of the blocks.
    counted_jobs *halves = nullptr, *blocks = nullptr;
    std::vector<std::unique_ptr<codec::joint_counts>> joint;  ///< by thread, of blocks with halves
};

/// Lets blocks of 32 and of 16 elements of a row among `jobs`, all of one tensor and pass, be
/// counted together.
void join_halves(std::span<counted_jobs* const> jobs, std::span<const block::grid> grids);

/// A pool of counters. Thread-safe.
class count_pool {
  public:
    /// Of the control's backend.
    explicit count_pool(const run_control& control) {
        const codec::backend& by = control.chosen_backend();
        if (by.counts != nullptr) passes_ = by.counts();
    }

    bool empty() const { return passes_.one == nullptr; }    ///< the backend does not count
    bool joins() const { return passes_.joint != nullptr; }  ///< blocks and their halves
    /// The counters of a thread.
    codec::word_counts& of(counted_jobs& jobs, std::size_t thread);
    /// Those of a thread for blocks and their halves together.
    codec::joint_counts& of_both(counted_jobs& blocks, std::size_t thread);
    /// Completes what of_both counted, before finish() for either.
    void settle(counted_jobs& blocks);
    /// The totals by job over the counters of all threads, which are then free again.
    std::vector<block::segment_stats> finish(counted_jobs& jobs);

  private:
    codec::word_passes passes_;
    std::mutex guard_;
    std::vector<std::unique_ptr<codec::word_counts>> free_;
    std::vector<std::unique_ptr<codec::joint_counts>> free_joint_;
};

}  // namespace mx::engine
