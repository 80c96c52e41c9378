// SPDX-License-Identifier: Apache-2.0
// Tensors that are counted instead of quantized (codec/word_counts.hpp): their selection, counters
// and results.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "libmx/codec/counted_totals.hpp"
#include "libmx/engine/control.hpp"

namespace mx::engine {

/// Whether counting a tensor is faster than quantizing it under these recipes, which have the same
/// block shape and satisfy codec::counts_words.
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
};

/// A pool of counters. Thread-safe.
class count_pool {
  public:
    explicit count_pool(const codec::backend& b)
        : pass_(b.counts != nullptr ? b.counts() : nullptr) {}

    /// Null if the backend does not count.
    codec::word_pass pass() const { return pass_; }
    /// The counters of a thread.
    codec::word_counts& of(counted_jobs& jobs, std::size_t thread);
    /// The totals by job over the counters of all threads, which are then free again.
    std::vector<block::segment_stats> finish(counted_jobs& jobs);

  private:
    codec::word_pass pass_;
    std::mutex guard_;
    std::vector<std::unique_ptr<codec::word_counts>> free_;
};

}  // namespace mx::engine
