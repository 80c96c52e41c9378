// SPDX-License-Identifier: Apache-2.0
// What a caller can steer while a long run is under way.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "libmx/base/notices.hpp"
#include "libmx/codec/backends.hpp"

namespace mx::engine {

/// Elements done and in all, over every tensor of the run.
struct progress {
    std::uint64_t done = 0;
    std::uint64_t total = 0;
};

struct run_control {
    int threads = 0;                            ///< 0: as many as OpenMP offers
    const codec::backend* backend = nullptr;    ///< null: the fastest one available
    const std::atomic<bool>* cancel = nullptr;  ///< raise it to stop; the run throws (cancelled)
    /// Elements whose values stay in memory between a prologue and the sweep behind it (float32:
    /// 64 MiB); a tensor with more of them is read twice. No figure depends on it but `passes`.
    std::uint64_t kept_elements = std::uint64_t{1} << 24;
    /// Elements from which tensors of 16-bit values are counted where totals are all that is wanted
    /// (tensor_counts.hpp); none: where that is faster. No figure depends on it.
    std::optional<std::uint64_t> counted_elements = std::nullopt;
    std::function<void(const progress&)> on_progress;  ///< called from one thread at a time
    /// Hears when the processor takes over from a device without room; null: that is an error.
    std::shared_ptr<base::notices> notices = nullptr;

    const codec::backend& chosen_backend() const {
        return backend != nullptr ? *backend : codec::best_backend();
    }
    /// What quantizes for one thread. Neither the notices nor the flag may go before it does.
    std::unique_ptr<codec::quantizer> make_quantizer() const {
        std::unique_ptr<codec::quantizer> q = chosen_backend().make_quantizer();
        q->steer(notices.get(), cancel);
        return q;
    }
};

}  // namespace mx::engine
