// SPDX-License-Identifier: Apache-2.0
// Caller controls of a long run.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "libmx/base/notices.hpp"
#include "libmx/codec/backends.hpp"

namespace mx::engine {

/// Elements done and total elements, over every tensor of the run.
struct progress {
    std::uint64_t done = 0;
    std::uint64_t total = 0;
};

struct run_control {
    int threads = 0;                            ///< 0: as many as OpenMP offers
    const codec::backend* backend = nullptr;    ///< null: the fastest one available
    const std::atomic<bool>* cancel = nullptr;  ///< raise it to stop; the run throws (cancelled)
    /// The number of elements that stay in memory between a prologue and the following sweep
    /// (float32: 64 MiB); a larger tensor is read twice. Affects no figure but `passes`.
    std::uint64_t kept_elements = std::uint64_t{1} << 24;
    /// The size in elements from which tensors of 16-bit values are counted if only totals are
    /// needed (tensor_counts.hpp); nullopt: when counting is faster. Affects no figure.
    std::optional<std::uint64_t> counted_elements = std::nullopt;
    std::function<void(const progress&)> on_progress;  ///< called from one thread at a time
    /// Called if the CPU replaces a device that lacks memory; null: that is an error.
    std::shared_ptr<base::notices> notices = nullptr;

    const codec::backend& chosen_backend() const {
        return backend != nullptr ? *backend : codec::best_backend();
    }
    /// The quantizer of one thread. The notices and the flag must outlive it.
    std::unique_ptr<codec::quantizer> make_quantizer() const {
        std::unique_ptr<codec::quantizer> q = chosen_backend().make_quantizer();
        q->steer(notices.get(), cancel);
        return q;
    }
};

}  // namespace mx::engine
