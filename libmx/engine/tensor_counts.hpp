// SPDX-License-Identifier: Apache-2.0
// Tensors that are counted and not quantized (codec/word_counts.hpp): which ones, by whom, and what
// comes of it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "libmx/codec/counted_totals.hpp"
#include "libmx/engine/control.hpp"

namespace mx::engine {

/// Whether counting a tensor is faster than quantizing it under recipes of one block shape, for all
/// of which codec::counts_words is true.
bool is_counted(const run_control& control, std::uint64_t elements,
                std::span<const codec::recipe_request> recipes);

/// Jobs of a tensor that have one block shape.
struct counted_jobs {
    std::size_t tensor = 0;         ///< of the batch
    std::vector<std::size_t> jobs;  ///< indices among those of the batch
    tensor::dtype type{};
    std::vector<codec::recipe_request> recipes;  ///< by job
    bool lasting = false;                        ///< their params are those of the whole run
    std::vector<std::unique_ptr<codec::word_counts>> by_thread;  ///< null: none yet
};

/// Counts that are used again. Threads may call at once.
class count_pool {
  public:
    explicit count_pool(const codec::backend& b)
        : pass_(b.counts != nullptr ? b.counts() : nullptr) {}

    /// Null where the backend does not count.
    codec::word_pass pass() const { return pass_; }
    /// Those of a thread.
    codec::word_counts& of(counted_jobs& jobs, std::size_t thread);
    /// The totals by job of what all threads counted, whose counts are free again.
    std::vector<block::segment_stats> finish(counted_jobs& jobs);

  private:
    codec::word_pass pass_;
    std::mutex guard_;
    std::vector<std::unique_ptr<codec::word_counts>> free_;
};

}  // namespace mx::engine
